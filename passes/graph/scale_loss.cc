#include "passes/graph/scale_loss.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/step_names.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

constexpr const char* kAddedScalars[] = {kMinScaleScalar, kScaleWindowScalar, kHysteresisScalar};
// What the step was given, and computes now.
constexpr const char* kDroppedScalars[] = {kCorrection1Scalar, kCorrection2Scalar};

absl::Status CheckNames(const Graph& step) {
  Diagnostics violations;
  std::vector<std::string> added(std::begin(kCarriedNames), std::end(kCarriedNames));
  added.insert(added.end(), std::begin(kAddedScalars), std::end(kAddedScalars));
  for (const std::string& name : added) {
    if (step.FindValue(name) == kNone) continue;
    violations.Add("scale_loss_c1", absl::StrCat("%", name),
                   "has the name of a value that a step with a loss scale adds");
  }
  for (const GraphOutput& output : step.outputs()) {
    const bool taken = output.name == kLossScaleReport || output.name == kFiniteReport;
    if (output.kind != OutputKind::kReport || !taken) continue;
    violations.Add("scale_loss_c1", absl::StrCat("report ", output.name),
                   "has the name of one that a step with a loss scale adds");
  }
  return violations.ToStatus();
}

class Scaling {
 public:
  explicit Scaling(const Graph& step)
      : step_(step), made_(step, step.level(), Rewriter::Inputs::kNone) {
    for (const GraphOutput& output : step.outputs()) {
      const bool is_report = output.kind == OutputKind::kReport;
      if (is_report && output.name == kGradNormReport) norm_ = output.value;
      if (is_report && output.name == kGradFactorReport) factor_ = output.value;
    }
  }

  Graph Run() && {
    CopyInputs();
    for (const Node& node : step_.nodes()) AddNode(node);
    GraphBuilder builder(std::move(made_).Finish());
    for (const auto& [name, next] : next_) {
      builder.AddOutput({next, OutputKind::kAssign, name, builder.graph().FindValue(name), 1.0});
    }
    builder.AddOutput({next_[0].second, OutputKind::kReport, kLossScaleReport, kNone, 1.0});
    builder.AddOutput({finite_, OutputKind::kReport, kFiniteReport, kNone, 1.0});
    return std::move(builder).Finish();
  }

 private:
  void CopyInputs() {
    for (const GraphInput& input : step_.inputs()) {
      const std::string& name = step_.value(input.value).name;
      const bool dropped =
          input.kind == InputKind::kScalar &&
          std::count(std::begin(kDroppedScalars), std::end(kDroppedScalars), name) > 0;
      if (!dropped) made_.CopyInput(input);
    }
    const TensorType scalar{DType::kF64, {}};
    for (const char* name : kAddedScalars) {
      made_.builder().AddInput(name, scalar, InputKind::kScalar);
    }
    for (const char* name : kCarriedNames) {
      made_.builder().AddInput(name, scalar, InputKind::kState);
    }
  }

  void AddNode(const Node& node) {
    if (node.phase == Phase::kUpdate && GuardedForm(*node.op) != nullptr) return AddStep(node);
    if (node.outputs[0] == factor_) return AddFactor(node);
    made_.Copy(node);
    if (IsSeed(node)) AddScaledSeed(node);
    if (node.outputs[0] == norm_) AddNextScale(node);
  }

  // Backward begins with the weights of loss terms; other constants there are zero gradients.
  bool IsSeed(const Node& node) const {
    const bool is_constant = node.inputs.empty() && IsRealScalar(step_.type(node.outputs[0]));
    return node.phase == Phase::kBackward && is_constant && node.attrs.Real("value") != 0;
  }

  ValueId Input(absl::string_view name) { return made_.builder().graph().FindValue(name); }

  static Node Like(const Node& node) {
    Node like = node;
    like.origin = "loss scale";
    return like;
  }

  void AddScaledSeed(const Node& node) {
    const ValueId seed = made_.Mapped(node.outputs[0]);
    made_.Map(node.outputs[0],
              made_.builder().Emit("mul", {seed, Input(kLossScale)}, {}, Like(node),
                                   absl::StrCat(step_.value(node.outputs[0]).name, ".scaled")));
  }

  void AddFactor(const Node& node) {
    GraphBuilder& builder = made_.builder();
    const ValueId scaled = builder.Emit("mul", {made_.Mapped(node.inputs[0]), Input(kLossScale)},
                                        {}, Like(node), absl::StrCat(kTokenReport, ".scaled"));
    made_.Map(factor_, builder.Emit("inv", {scaled}, {}, Like(node), kGradFactorReport));
  }

  void AddNextScale(const Node& node) {
    GraphBuilder& builder = made_.builder();
    const Node like = Like(node);
    finite_ = builder.Emit("is_finite", {made_.Mapped(norm_)}, {}, like, kFiniteReport);
    const char* const betas[] = {kBeta1Scalar, kBeta2Scalar};
    for (size_t i = 0; i < std::size(betas); ++i) {
      if (step_.FindValue(kDroppedScalars[i]) == kNone) continue;  // no optimizer takes it
      corrections_.push_back(builder.Emit("bias_correction", {Input(betas[i]), Input(kAdamSteps)},
                                          {}, like, kDroppedScalars[i]));
    }
    const std::vector<ValueId> operands = {
        Input(kLossScale),      Input(kGrowthCount),       Input(kHysteresisLeft),  finite_,
        Input(kMinScaleScalar), Input(kScaleWindowScalar), Input(kHysteresisScalar)};
    std::vector<std::string> names;
    for (const char* name : kCarriedNames) names.push_back(absl::StrCat(name, ".next"));
    const absl::StatusOr<std::vector<ValueId>> made =
        builder.Append("next_loss_scale", operands, {}, like, {names[0], names[1], names[2]});
    MGC_CHECK(made.ok()) << made.status().ToString();
    for (size_t i = 0; i < made->size(); ++i) next_.emplace_back(kCarriedNames[i], (*made)[i]);
    next_.emplace_back(kAdamSteps,
                       builder.Emit("add", {Input(kAdamSteps), finite_}, {}, like, names[3]));
  }

  // What an optimizer does with parameters and states, where the step is taken.
  void AddStep(const Node& node) {
    Node guarded = node;
    guarded.op = GuardedForm(*node.op);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto dropped =
          std::find(std::begin(kDroppedScalars), std::end(kDroppedScalars), node.op->operands[i]);
      inputs.push_back(dropped == std::end(kDroppedScalars)
                           ? made_.Mapped(node.inputs[i])
                           : corrections_[static_cast<size_t>(dropped - kDroppedScalars)]);
    }
    inputs.push_back(finite_);
    made_.CopyReading(guarded, std::move(inputs));
  }

  const Graph& step_;
  Rewriter made_;
  ValueId factor_ = kNone;  // what makes sums of gradients means
  ValueId norm_ = kNone;
  // New values.
  ValueId finite_ = kNone;
  std::vector<ValueId> corrections_;
  std::vector<std::pair<std::string, ValueId>> next_;  // by name of what is carried
};

}  // namespace

absl::StatusOr<Graph> ScaleLoss(const Graph& step) {
  MGC_RETURN_IF_ERROR(CheckNames(step));
  return Scaling(step).Run();
}

}  // namespace mgc
