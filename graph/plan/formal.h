// The memory that a segment's base address points into.

#ifndef MGC_GRAPH_PLAN_FORMAL_H_
#define MGC_GRAPH_PLAN_FORMAL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace mgc {

enum class Region : uint8_t {
  kTransient,  // dead when the segment ends
  kParams,     // of a block: parameters,
  kGrads,      // gradients,
  kStates,     // and optimizer states
  kFrame,      // what forward keeps for backward, of one micro-batch
  kInput,      // boundaries: the residual stream and its gradient, in and out
  kOutput,
  kGradInput,
  kGradOutput,
  kCopies,    // working copies of parameters that layers read, made when a step begins
  kNorm,      // entries of the gradient norm, of the call's layer
  kGlobals,   // values of the whole step
  kGathered,  // parameters that a layer gathers for a forward or backward of its own (ZeRO-3),
  kOwed,      // and its gradients on their way into pieces (ZeRO-2): both in two places in turn
};
inline constexpr int kNumRegions = 14;

// The name of the block of parameters that several layers use; the block of a layer further on is
// called `tied.3`, after the layer that holds it.
inline constexpr char kTiedBlock[] = "tied";

// What of a frame the layers of a chunk share.
inline constexpr char kSharedFrame[] = "shared";

// A base address of a segment, which each call binds. Invariant: IsSound.
struct Formal {
  Region region = Region::kTransient;
  // Which block: its name, or the number of the layer whose own it is; or kSharedFrame. Empty: that
  // of the call's layer.
  std::string block;
};
inline bool operator==(const Formal& a, const Formal& b) {
  return a.region == b.region && a.block == b.block;
}
inline bool operator!=(const Formal& a, const Formal& b) { return !(a == b); }

// Parameters, gradients or states.
inline bool IsOfBlock(Region region) {
  return region == Region::kParams || region == Region::kGrads || region == Region::kStates;
}
// The residual stream or its gradient, where a layer takes or leaves it.
inline bool IsBoundary(Region region) {
  return region == Region::kInput || region == Region::kOutput || region == Region::kGradInput ||
         region == Region::kGradOutput;
}

// Memory that neighbouring layers take in turn: what one has left there, the next but one
// overwrites.
inline bool IsInTurn(Region region) {
  return region == Region::kGathered || region == Region::kOwed;
}

// Whether `block` is empty but for regions of a block, for copies that another layer has, and for
// what is shared of a frame.
bool IsSound(const Formal& formal);

// `frame`, `grads`, `grads:head`, `frame:shared`.
std::string ToString(const Formal& formal);
// Nothing for any other text.
absl::optional<Formal> ParseFormal(absl::string_view text);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_FORMAL_H_
