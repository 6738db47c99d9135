// Layers for a graph that names none, so that a pipeline has where to cut it.
//
//   %h = matmul(%x, %w0)            %h = matmul(%x, %w0) layer 0
//   %a = gelu(%h)            ->     %a = gelu(%h) layer 0
//   %y = matmul(%a, %w1)            %y = matmul(%a, %w1) layer 1
//
// Such a graph may be cut behind every forward node but the last, in the order in which it is
// written. What is made before a cut and read behind it crosses the cut: few bytes are better, and
// a parameter that is read on both sides counts as one that crosses. Layers are as many as the
// pipeline has stages, cut where the slowest of them, with what crosses at its ends, is fastest as
// the machine's costs say (passes/plan/time/cost.h); among equals where fewest bytes cross. The
// result in text can be edited: a graph that names its layers is cut between them.

#ifndef MGC_PASSES_CUT_LAYERS_H_
#define MGC_PASSES_CUT_LAYERS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/machine.h"

namespace mgc {

// A logical graph with layers 0 to layers - 1, at least one, no embedding and no head.
// InvalidArgument, cut_c1: it has fewer nodes than layers.
absl::StatusOr<Graph> CutIntoLayers(const Graph& logical, int64_t layers, const Machine& machine);

}  // namespace mgc

#endif  // MGC_PASSES_CUT_LAYERS_H_
