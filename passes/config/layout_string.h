// Megatron's layout strings, which place layers by hand: `Et*3|(tt|)*2tL`.
//
//   layout  = item*              commas anywhere are ignored
//   item    = unit [ '*' count ]
//   unit    = 'E' | 't' | 'm' | 'L' | '|' | '(' item+ ')'   groups do not nest and need a count
//
// E is the embedding, t a decoder layer, m a multi-token-prediction layer, L the head with its
// loss. `|` ends a stage. Stage i of the flat list is chunk i / pp of rank i mod pp.

#ifndef MGC_PASSES_CONFIG_LAYOUT_STRING_H_
#define MGC_PASSES_CONFIG_LAYOUT_STRING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// Letters a layout may have once it is written out.
inline constexpr int kMaxLayoutLetters = 1 << 16;

// The letters of each stage, in the order written; a stage may be empty. InvalidArgument naming the
// column for text that is no layout or is longer than kMaxLayoutLetters when written out; its
// message quotes the text as it is, for whoever prints it to escape. Says nothing about which
// letters stand where (passes/config/place_layers.h).
absl::StatusOr<std::vector<std::string>> ParseLayoutString(absl::string_view layout);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_LAYOUT_STRING_H_
