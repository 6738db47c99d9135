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
// fewest bytes cross (passes/choose_cuts.h). Bytes and times are those of one rank if dp cuts the
// samples and no other axis anything: what tp and cp cut, a strategy says later. The result in text
// can be edited: a graph that names its layers is cut between them.

#ifndef MGC_PASSES_CUT_LAYERS_H_
#define MGC_PASSES_CUT_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "graph/types/mesh.h"
#include "passes/config/parallel_config.h"
#include "passes/config/place_layers.h"

namespace mgc {

// What a graph is cut into.
struct CutRequest {
  Mesh mesh;                       // whose dp shares the samples and whose pp the stages
  std::vector<StagePlace> stages;  // a layer for each; at least one
  // A value of the last node of each layer but the last; empty: chosen by cost.
  std::vector<std::string> behind;
};

// What a configuration asks for, layers placed by it. InvalidArgument for one that has no mesh.
absl::StatusOr<CutRequest> CutRequestOf(const ParallelConfig& config,
                                        const LayerPlacement& placement);

// A place behind a node.
struct CutPoint {
  std::string value;    // the first that the node makes
  int64_t bytes = 0;    // of all that crosses, of one micro-batch, on a rank that only dp cuts
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

// A logical graph with a layer for each stage, from 0 on, no embedding and no head. Errors are
// those of FindCuts.
absl::StatusOr<Graph> CutIntoLayers(const Graph& logical, const CutRequest& request,
                                    const Machine& machine);

}  // namespace mgc

#endif  // MGC_PASSES_CUT_LAYERS_H_
