// Layers for a graph that names none, so that a pipeline has where to cut it.
//
//   %h = matmul(%x, %w0)            %h = matmul(%x, %w0) layer 0
//   %a = gelu(%h)            ->     %a = gelu(%h) layer 0
//   %y = matmul(%a, %w1)            %y = matmul(%a, %w1) layer 1
//
// Such a graph may be cut behind every forward node but the last, in the order in which it is
// written. What is made before a cut and read behind it crosses the cut: few bytes are better, and
// a parameter that is read on both sides counts as one that crosses. Layers are as many as the
// pipeline has stages, cut where the user says, or where the slowest of them, with what crosses at
// its ends, is fastest as the machine's costs say (passes/plan/time/cost.h); among equals where
// fewest bytes cross. The result in text can be edited: a graph that names its layers is cut
// between them.

#ifndef MGC_PASSES_CUT_LAYERS_H_
#define MGC_PASSES_CUT_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/machine.h"

namespace mgc {

// What a graph is cut into.
struct CutRequest {
  int64_t layers = 1;
  // A value of the last node of each layer but the last; empty: chosen by cost.
  std::vector<std::string> behind;
};

// A place behind a node.
struct CutPoint {
  std::string value;    // the first that the node makes
  int64_t bytes = 0;    // of all that crosses, of one micro-batch on one rank
  bool narrow = false;  // neither neighbouring place has fewer
  double before = 0;    // of the forward pass' time, the share before it
  bool chosen = false;  // a layer ends here
};

// All places where a logical graph may be cut, in its order, with those chosen that the request
// comes to; layers that the graph has do not count. InvalidArgument with all violations: cut_c1,
// the graph has fewer nodes than layers; cut_c2, what `behind` names is no place, or stands before
// one that is named earlier, or is not one for each layer but the last.
absl::StatusOr<std::vector<CutPoint>> FindCuts(const Graph& logical, const CutRequest& request,
                                               const Machine& machine);

// A logical graph with layers 0 to layers - 1, at least one, no embedding and no head. Errors are
// those of FindCuts.
absl::StatusOr<Graph> CutIntoLayers(const Graph& logical, const CutRequest& request,
                                    const Machine& machine);

}  // namespace mgc

#endif  // MGC_PASSES_CUT_LAYERS_H_
