// What a rank computes again of layers that differ.
//
//   room for 500 bytes, layers of 200, 200 and 300   ->   none, full, none
//                                                         where the second saves most a nanosecond
//
// Of every layer each kind of recomputation that may be used takes a time and keeps a frame. Steps
// from one to the next are taken in the order of what a byte saved costs until all frames fit; then
// those are taken back without which they fit too. This is the greedy way into a knapsack: it takes
// at most one step's time more than the least.

#ifndef MGC_PASSES_SEARCH_PLANS_CHOOSE_KINDS_H_
#define MGC_PASSES_SEARCH_PLANS_CHOOSE_KINDS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "passes/search/plans/model_profile.h"

namespace mgc {

// What one layer costs under one kind of recomputation.
struct KindCost {
  int64_t ns = 0;
  int64_t frame_bytes = 0;
};

// By kind; nothing where it may not be used. One may at least.
using KindCosts = std::array<absl::optional<KindCost>, kNumRecomputeKinds>;

struct KindsChoice {
  bool fits = false;
  int64_t ns = 0;  // of all layers
  std::vector<RecomputeKind> kinds;
};

// `room`: bytes of all frames together. As little is computed again as may be where all fit.
KindsChoice ChooseKinds(absl::Span<const KindCosts> layers, int64_t room);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_CHOOSE_KINDS_H_
