// The search for a table of rows: descents over lists of dim classes, whose order says which of two
// a value is cut over that has both.

#ifndef MGC_PASSES_SEARCH_CLASS_SEARCH_H_
#define MGC_PASSES_SEARCH_CLASS_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "passes/search/layout_costs.h"

namespace mgc {

// How much is tried for one layout. Each of two descents may use half of it, so that neither leaves
// nothing to the other.
struct SearchLimits {
  size_t plans = 1000;    // that are compiled; at least 2
  size_t tables = 40000;  // that are looked at, most of which place alike; at least 2
};

// What a list of classes comes to. ResourceExhausted where that would be more plans than
// `most_plans`; an error that IsRefusal passes over the list, any other ends the search.
using ClassCosts = absl::FunctionRef<absl::StatusOr<LayoutCost>(
    const std::vector<std::string>& classes, size_t most_plans)>;

struct FoundClasses {
  std::vector<std::string> classes;
  bool cut_short = false;  // by a limit, before nothing was better
};

// The list of fewest parameter bytes above `budget`, then of least time, then of fewest choices,
// that descents from no class and from all classes find: by one choice less or more, the best of
// them, else by one in the place of another, anywhere in the order, the first that is better. A
// choice is a list of `choices`, of which all classes are taken, or none. Errors: the first refusal
// where all is refused; what `costs` fails with.
absl::StatusOr<FoundClasses> SearchClasses(const std::vector<std::vector<std::string>>& choices,
                                           int64_t budget, const SearchLimits& limits,
                                           ClassCosts costs);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_CLASS_SEARCH_H_
