// What a step of a graph that can be trained or evaluated sums up over its micro-batches.

#ifndef MGC_PASSES_GRAPH_STEP_TERMS_H_
#define MGC_PASSES_GRAPH_STEP_TERMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

struct LossTerm {
  ValueId value = kNone;
  std::string report;  // under which users see it
  double weight = 1.0;
};

// Real scalars that nodes make.
struct StepTerms {
  std::vector<LossTerm> losses;  // at least one
  ValueId count = kNone;         // of tokens
};

// The first loss is reported as `loss`, others by their names. InvalidArgument: a loss or the count
// is missing (differentiate_c1), two reports have one name (differentiate_c3).
absl::StatusOr<StepTerms> FindTerms(const Graph& logical);

// Whether a step can be made of the graph's inputs. InvalidArgument with all that cannot: a
// parameter that is not f32 or a scalar that no step is given (differentiate_c5), a value with the
// name of one that the step adds (differentiate_c6).
absl::Status CheckInputs(const Graph& logical);

// Sums of a whole step are f64: appends the conversion of terms of another type, in the place of
// the nodes that make them.
void WidenTerms(GraphBuilder* builder, StepTerms* terms);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_STEP_TERMS_H_
