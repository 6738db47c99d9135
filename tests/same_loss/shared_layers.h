// Models whose layers use each other's parameters.

#ifndef MGC_TESTS_SAME_LOSS_SHARED_LAYERS_H_
#define MGC_TESTS_SAME_LOSS_SHARED_LAYERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

// A logical graph with parameters `layers.<i>.<rest>`, of layers that share them, by name:
//
//   albert      one block for all layers
//   universal   one block, which each depth signs with a first norm of its own
//   turns       norms and attention of layers 0, 3, 4 are one, those of 1, 2, 5 another; one MLP
//   frozen      as albert, its attention kept as it is (train=0)
//
// NotFound for another name.
absl::StatusOr<Graph> ShareLayers(const Graph& model, const std::string& sharing);

}  // namespace mgc

#endif  // MGC_TESTS_SAME_LOSS_SHARED_LAYERS_H_
