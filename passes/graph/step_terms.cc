#include "passes/graph/step_terms.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

Diagnostics CheckTerms(const StepTerms& terms) {
  Diagnostics violations;
  if (terms.losses.empty()) {
    violations.Add({"differentiate_c1",
                    "a graph to train needs a loss, a real scalar that it makes",
                    "`loss %l`, where %l = total(%x), weighted_sum(%x, %w) or sum_squares(%x)"});
  }
  if (terms.count == kNone) {
    violations.Add(
        {"differentiate_c1",
         "a graph to train needs a report named `count`, a real scalar that it makes: "
         "what its losses are means over",
         "`report \"count\" = %n`, where %n = total(%weights), or constant() {value=1.0} "
         "for a mean over micro-batches"});
  }
  return violations;
}

}  // namespace

absl::StatusOr<StepTerms> FindTerms(const Graph& logical) {
  StepTerms terms;
  std::set<std::string> reports = {kTokenReport, kGradNormReport, kGradFactorReport};
  for (const GraphOutput& output : logical.outputs()) {
    const bool is_made = logical.value(output.value).producer != kNone;
    const bool is_term = is_made && IsRealScalar(logical.type(output.value));
    if (output.kind == OutputKind::kReport && output.name == kCountReport && is_term) {
      terms.count = output.value;
    }
    if (output.kind != OutputKind::kLoss || !is_term) continue;
    const std::string report = terms.losses.empty() ? kLossReport : output.name;
    if (!reports.insert(report).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "loss term `", report, "` has the name of another report [differentiate_c3]"));
    }
    terms.losses.push_back({output.value, report, output.weight});
  }
  MGC_RETURN_IF_ERROR(CheckTerms(terms).ToStatus());
  return terms;
}

absl::Status CheckInputs(const Graph& logical) {
  Diagnostics violations;
  const auto name_of = [&logical](ValueId id) {
    return absl::StrCat("%", EscapeBytes(logical.value(id).name));
  };
  const auto reserve = [&](absl::string_view name) {
    const ValueId taken = logical.FindValue(name);
    if (taken == kNone) return;
    violations.Add("differentiate_c6", name_of(taken),
                   "has the name of a value that a training step adds");
  };
  for (const std::string& scalar : UpdateScalars(logical)) reserve(scalar);
  for (const GraphInput& input : logical.inputs()) {
    const Value& value = logical.value(input.value);
    if (input.kind == InputKind::kScalar) {
      violations.Add("differentiate_c5", name_of(input.value),
                     "is a scalar that a training step is not given; `constant` makes one");
    }
    if (input.kind == InputKind::kState) {
      violations.Add("differentiate_c5", name_of(input.value),
                     "is left for the next step, and a step that trains leaves no such tensor");
    }
    if (input.kind != InputKind::kParam) continue;
    const int64_t rows = input.attrs.Int(kRowDimsAttr);
    const bool of_matrices = IsTrained(input.attrs) && !OptimizerOf(input.attrs).direction.empty();
    if (of_matrices && (rows < 1 || rows >= value.type.ndim())) {
      violations.Add("differentiate_c8", name_of(input.value),
                     absl::StrCat("is stepped as a matrix, and its row_dims is ", rows, " of ",
                                  value.type.ndim(), " dims"));
    }
    reserve(GradName(value.name));
    for (const std::string& state : StatesOf(OptimizerOf(input.attrs))) {
      reserve(StateName(value.name, state));
    }
    if (value.type.dtype == DType::kF32) continue;
    violations.Add("differentiate_c5", name_of(input.value),
                   absl::StrCat("is a parameter of ", NameOf(value.type.dtype), ", not of f32"));
  }
  return violations.ToStatus();
}

void WidenTerms(GraphBuilder* builder, StepTerms* terms) {
  const auto widen = [builder](ValueId* term) {
    const Value& value = builder->graph().value(*term);
    if (value.type.dtype == DType::kF64) return;
    const Node like = builder->graph().node(value.producer);
    *term = builder->Emit("total", {*term}, {}, like, absl::StrCat(value.name, ".f64"));
  };
  for (LossTerm& loss : terms->losses) widen(&loss.value);
  widen(&terms->count);
}

}  // namespace mgc
