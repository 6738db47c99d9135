#include "graph/verify/meaning/reference_update.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/eval/evaluate_op.h"
#include "graph/ir/op.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/step_names.h"
#include "graph/verify/meaning/reference_orthogonal.h"

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
    const Optimizer& optimizer = OptimizerOf(input.attrs);
    const std::vector<std::string> states = StatesOf(optimizer);
    const bool of_matrices = !optimizer.direction.empty();
    std::vector<ResidueTensor> tensors = {updated.gradient};
    if (!of_matrices) tensors.insert(tensors.begin(), inputs_.Real(name, type));
    for (const std::string& state : states) {
      tensors.push_back(inputs_.Real(StateName(name, state), type));
    }
    std::vector<ResidueTensor> made =
        RunStep(of_matrices ? optimizer.direction : optimizer.step, input.attrs, type, tensors);
    if (of_matrices) {
      made[0] = OrthogonalOf(scalars_, std::move(made[0]), input.attrs.Int(kRowDimsAttr));
      made[0] = RunStep(optimizer.step, input.attrs, type,
                        {inputs_.Real(name, type), std::move(made[0])})[0];
    }
    updated.param = std::move(made[0]);
    for (size_t i = 0; i < states.size(); ++i) updated.states[states[i]] = std::move(made[i + 1]);
  }

  // An op of an optimizer, by its guarded form where a step may be left out: on tensors of a
  // parameter's type and the step's numbers. It has as many results as it takes states, and one.
  std::vector<ResidueTensor> RunStep(absl::string_view name, const Attrs& of_param,
                                     const TensorType& type,
                                     std::vector<ResidueTensor> tensors) const {
    const OpDef* op = FindOp(name);
    MGC_CHECK(op != nullptr) << name;
    if (scales_loss_) op = GuardedForm(*op);
    MGC_CHECK(op != nullptr) << name;
    std::vector<const TensorType*> types(tensors.size(), &type);
    for (size_t i = tensors.size(); i < op->operands.size(); ++i) {
      tensors.push_back(NumberFor(op->operands[i], of_param));
      types.push_back(&kScalarType);
    }
    Attrs attrs;
    for (const AttrSpec& spec : op->attrs) attrs.Set(spec.name, of_param.Int(spec.name));
    return RunOp(scalars_, op->name, attrs, types, tensors,
                 std::vector<TensorType>(op->results.size(), type));
  }

  // A number of the step as one parameter takes it.
  ResidueTensor NumberFor(const std::string& scalar, const Attrs& of_param) const {
    ResidueTensor number = numbers_.Tensor(scalar);
    const char* scale = scalar == kRateScalar    ? kRateScaleAttr
                        : scalar == kDecayScalar ? kDecayScaleAttr
                                                 : nullptr;
    if (scale == nullptr) return number;
    number.real[0] = scalars_.Mul(number.real[0], scalars_.Constant(of_param.Real(scale, 1)));
    return number;
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
