// Which optimizer steps which parameter, written on the parameters.
//
//   --optimizer muon --param-group '*.norm*:lr=0.5'
//   param %w: f32[8,16] {decay=1}  ->  param %w: f32[8,16] {decay=1, optimizer="muon", row_dims=1}
//   param %b: f32[16] {decay=0}        param %b: f32[16] {decay=0}
//
// Runs on the model itself, before all passes: the plan is of the model that comes out, and the
// proof demands what it says.
//
// A matrix is a parameter that products of layers read and nothing else, all of them contracting
// the same of its first or last dims: those are one side, the others the other. Embedding and head
// are none; a model that names no layers has neither. Parameters are whole matrices where the model
// says them apart: q, k and v, gate and up are packed for products alone, in the plan.

#ifndef MGC_PASSES_GRAPH_ASSIGN_OPTIMIZERS_H_
#define MGC_PASSES_GRAPH_ASSIGN_OPTIMIZERS_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "passes/config/optimizer_config.h"

namespace mgc {

// A parameter that names an optimizer itself keeps it; factors of groups are multiplied with its
// own. InvalidArgument, all violations at once: optimizer_c1, there is none of that name;
// optimizer_c2, a group is of no trained parameter; optimizer_c3, one of matrices finds none.
absl::StatusOr<Graph> AssignOptimizers(const Graph& logical, const OptimizerConfig& config);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_ASSIGN_OPTIMIZERS_H_
