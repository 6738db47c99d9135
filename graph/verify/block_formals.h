// The formals of segments that name memory of a block (docs/plan.md, Segments).

#ifndef MGC_GRAPH_VERIFY_BLOCK_FORMALS_H_
#define MGC_GRAPH_VERIFY_BLOCK_FORMALS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"

namespace mgc {

enum class BlockRegion { kParams, kGrads, kStates };

struct BlockFormal {
  BlockRegion region = BlockRegion::kParams;
  std::string block;  // its name; empty: the block of the call's layer
};

// Of `params`, `tied_grads`, `grads:head`, ...; nothing for any other formal.
inline absl::optional<BlockFormal> BlockFormalOf(absl::string_view formal) {
  if (absl::ConsumePrefix(&formal, "grads:")) {
    return BlockFormal{BlockRegion::kGrads, std::string(formal)};
  }
  const std::string block = absl::ConsumePrefix(&formal, "tied_") ? "tied" : "";
  if (formal == "params") return BlockFormal{BlockRegion::kParams, block};
  if (formal == "grads") return BlockFormal{BlockRegion::kGrads, block};
  if (formal == "states") return BlockFormal{BlockRegion::kStates, block};
  return absl::nullopt;
}

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_BLOCK_FORMALS_H_
