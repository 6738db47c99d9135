#include "graph/ir/results.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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
  bool any = false;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    if (IsTrained(input.attrs)) return false;
    any = true;
  }
  return any;
}

bool IsKeptState(const Graph& graph, const GraphInput& input) {
  return input.kind == InputKind::kState && input.attrs.Find("of") == nullptr &&
         graph.type(input.value).ndim() > 0;
}

std::string SeenInput(int64_t window) {
  return window == 0 ? kSeenInput : absl::StrCat(kSeenInput, ".", window);
}

absl::optional<int64_t> WindowOfSeen(absl::string_view name) {
  if (name == kSeenInput) return 0;
  int64_t window = 0;
  const bool is_window = absl::ConsumePrefix(&name, kSeenInput) &&
                         absl::ConsumePrefix(&name, ".") && absl::SimpleAtoi(name, &window) &&
                         window > 0;
  return is_window ? absl::make_optional(window) : absl::nullopt;
}

}  // namespace mgc
