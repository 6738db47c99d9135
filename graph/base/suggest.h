// "Did you mean": the legal name nearest to a misspelt one.
#ifndef MGC_GRAPH_BASE_SUGGEST_H_
#define MGC_GRAPH_BASE_SUGGEST_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// The candidate with the fewest insertions, deletions and replacements of one byte, and
// transpositions of two, away from `name` (the first of equals); empty if even that one differs in
// more than a third of the longer name.
absl::string_view NearestName(absl::string_view name,
                              absl::Span<const absl::string_view> candidates);

// " (did you mean X?)", or "" without a near candidate.
std::string DidYouMean(absl::string_view name, absl::Span<const absl::string_view> candidates);

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_SUGGEST_H_
