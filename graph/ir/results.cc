#include "graph/ir/results.h"

#include <algorithm>

#include "graph/ir/step_names.h"

namespace mgc {

std::vector<const GraphOutput*> ResultsOf(const Graph& graph) {
  std::vector<const GraphOutput*> results;
  for (const GraphOutput& output : graph.outputs()) {
    const Value& value = graph.value(output.value);
    const bool is_report = output.kind == OutputKind::kReport;
    if (is_report && value.producer != kNone && value.type.ndim() > 0) results.push_back(&output);
  }
  return results;
}

bool IsAsked(const Graph& graph) {
  const bool trains = std::any_of(
      graph.inputs().begin(), graph.inputs().end(), [](const GraphInput& input) {
        return input.kind == InputKind::kParam && IsTrained(input.attrs);
      });
  return !trains && !ResultsOf(graph).empty();
}

}  // namespace mgc
