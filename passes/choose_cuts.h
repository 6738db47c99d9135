// Where to cut a sequence so that its slowest piece is fastest. A piece lies between two cuts and
// takes as long as what stands in it and as what crosses at its ends:
//
//   piece k = (ends before cut k - ends before cut k - 1) + sent over cut k - 1 + sent over cut k

#ifndef MGC_PASSES_CHOOSE_CUTS_H_
#define MGC_PASSES_CHOOSE_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/types/machine.h"

namespace mgc {

// A place for a cut. Times and bytes are at most kMaxNs (passes/plan/time/cost.h).
struct CutPlace {
  int64_t ns = 0;     // when what stands before it has ended; places are in this order
  int64_t bytes = 0;  // that cross it
};

// A place for each of `tiers`, ascending: of all choices whose slowest piece is fastest those that
// fewest bytes cross in all, and of these the one whose last place is earliest, then the last but
// one, and so on. Cut k crosses tiers[k]; null: nothing is sent there. There are at least as many
// places as tiers; `end_ns` is when all has ended.
std::vector<size_t> ChooseCuts(absl::Span<const CutPlace> places, int64_t end_ns,
                               absl::Span<const NetworkTier* const> tiers);

}  // namespace mgc

#endif  // MGC_PASSES_CHOOSE_CUTS_H_
