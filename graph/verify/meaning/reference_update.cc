#include "graph/verify/meaning/reference_update.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/eval/evaluate_op.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

const TensorType kScalarType = {DType::kF64, {}};

// Runs an op on one device whose operands have the types given.
std::vector<ResidueTensor> RunOp(const ResidueModel& scalars, absl::string_view name,
                                 const Attrs& attrs, const std::vector<const TensorType*>& operands,
                                 const std::vector<ResidueTensor>& tensors,
                                 const std::vector<TensorType>& results) {
  const OpDef* op = FindOp(name);
  MGC_CHECK(op != nullptr) << name;
  std::vector<const TensorType*> made;
  made.reserve(results.size());
  for (const TensorType& type : results) made.push_back(&type);
  absl::StatusOr<FactorRule> rule = RuleOf(*op, OpUse{attrs, operands, made});
  MGC_CHECK(rule.ok()) << rule.status().ToString();
  std::vector<const ResidueTensor*> inputs;
  inputs.reserve(tensors.size());
  for (const ResidueTensor& tensor : tensors) inputs.push_back(&tensor);
  return EvaluateWhole(scalars, *op, attrs, *rule, results, inputs, kStepSeed);
}

// The numbers of a step's update: what it is given, carried and makes of them.
class UpdateNumbers {
 public:
  UpdateNumbers(const StepInputs& inputs, const ResidueModel& scalars)
      : inputs_(inputs), scalars_(scalars) {}

  ResiduePair Get(const std::string& name) const {
    const auto made = made_.find(name);
    return made != made_.end() ? made->second : inputs_.Real(name, kScalarType).real[0];
  }
  ResidueTensor Tensor(const std::string& name) const {
    ResidueTensor tensor = ResidueTensor::Make({}, false);
    tensor.real[0] = Get(name);
    return tensor;
  }
  void Set(const std::string& name, ResiduePair value) { made_[name] = value; }

  // Numbers that an op makes of others.
  std::vector<ResiduePair> Run(absl::string_view op, const std::vector<std::string>& operands,
                               size_t results) const {
    std::vector<ResidueTensor> tensors;
    tensors.reserve(operands.size());
    for (const std::string& name : operands) tensors.push_back(Tensor(name));
    std::vector<ResiduePair> made;
    for (const ResidueTensor& tensor :
         RunOp(scalars_, op, {}, std::vector<const TensorType*>(operands.size(), &kScalarType),
               tensors, std::vector<TensorType>(results, kScalarType))) {
      made.push_back(tensor.real[0]);
    }
    return made;
  }

 private:
  const StepInputs& inputs_;
  const ResidueModel& scalars_;
  std::map<std::string, ResiduePair> made_;  // in the place of inputs
};

class UpdateEvaluation {
 public:
  UpdateEvaluation(const Graph& model, const StepInputs& inputs, const ResidueModel& scalars,
                   bool scales_loss, StepReference* out)
      : model_(model),
        inputs_(inputs),
        scalars_(scalars),
        scales_loss_(scales_loss),
        numbers_(inputs, scalars),
        out_(*out) {}

  // The factor that makes sums of gradients means goes into their norm and into what clips them.
  void Run(ResiduePair tokens) {
    const ResiduePair factor =
        scalars_.Inv(scales_loss_ ? scalars_.Mul(tokens, numbers_.Get(kLossScale)) : tokens);
    ResiduePair square;
    for (const auto& [name, updated] : out_.params) {
      for (const ResiduePair& element : updated.gradient.real) {
        square = scalars_.Add(square, scalars_.Mul(element, element));
      }
    }
    const ResiduePair norm = scalars_.Mul(scalars_.Fn("sqrt", {square}), factor);
    out_.reports[kGradFactorReport] = factor;
    out_.reports[kGradNormReport] = norm;
    numbers_.Set(kGradNormReport, norm);
    const ResiduePair clip = numbers_.Run("clip_scale", {kGradNormReport, kMaxNormScalar}, 1)[0];
    numbers_.Set("clip", scalars_.Mul(clip, factor));
    if (scales_loss_) ScaleNext();
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind == InputKind::kParam) Step(input);
    }
  }

 private:
  // What the step's numbers are where the loss is scaled, and those of the next step.
  void ScaleNext() {
    const ResiduePair finite = numbers_.Run("is_finite", {kGradNormReport}, 1)[0];
    numbers_.Set("apply", finite);
    const std::vector<ResiduePair> next =
        numbers_.Run("next_loss_scale",
                     {kLossScale, kGrowthCount, kHysteresisLeft, "apply", kMinScaleScalar,
                      kScaleWindowScalar, kHysteresisScalar},
                     3);
    out_.carried = {{kLossScale, next[0]},
                    {kGrowthCount, next[1]},
                    {kHysteresisLeft, next[2]},
                    {kAdamSteps, scalars_.Add(numbers_.Get(kAdamSteps), finite)}};
    for (const auto& [correction, beta] : {std::make_pair(kCorrection1Scalar, kBeta1Scalar),
                                           std::make_pair(kCorrection2Scalar, kBeta2Scalar)}) {
      numbers_.Set(correction, numbers_.Run("bias_correction", {beta, kAdamSteps}, 1)[0]);
    }
    out_.reports[kLossScaleReport] = next[0];
    out_.reports[kFiniteReport] = finite;
  }

  void Step(const GraphInput& input) {
    const std::string& name = model_.value(input.value).name;
    const TensorType& type = model_.type(input.value);
    UpdatedParam& updated = out_.params[name];
    if (!IsTrained(input.attrs)) {
      updated.param = inputs_.Real(name, type);
      return;
    }
    const OpDef* adamw = FindOp(scales_loss_ ? "guarded_adamw" : "adamw");
    MGC_CHECK(adamw != nullptr);
    std::vector<ResidueTensor> tensors = {inputs_.Real(name, type), updated.gradient,
                                          inputs_.Real(FirstMomentName(name), type),
                                          inputs_.Real(SecondMomentName(name), type)};
    std::vector<const TensorType*> types(4, &type);
    for (size_t i = tensors.size(); i < adamw->operands.size(); ++i) {
      tensors.push_back(numbers_.Tensor(adamw->operands[i]));
      types.push_back(&kScalarType);
    }
    std::vector<ResidueTensor> made =
        RunOp(scalars_, adamw->name, {{"decay", input.attrs.Int("decay")}}, types, tensors,
              {type, type, type});
    updated.param = std::move(made[0]);
    updated.first = std::move(made[1]);
    updated.second = std::move(made[2]);
  }

  const Graph& model_;
  const StepInputs& inputs_;
  const ResidueModel& scalars_;
  const bool scales_loss_;
  UpdateNumbers numbers_;
  StepReference& out_;
};

}  // namespace

void EvaluateUpdate(const Graph& model, const StepInputs& inputs, const ResidueModel& scalars,
                    bool scales_loss, ResiduePair tokens, StepReference* out) {
  UpdateEvaluation(model, inputs, scalars, scales_loss, out).Run(tokens);
}

}  // namespace mgc
