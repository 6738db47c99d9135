#include "graph/verify/meaning/reference.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/eval/evaluate_op.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/verify/meaning/eager_gradient.h"

namespace mgc {
namespace {

const TensorType kScalarType = {DType::kF64, {}};

// The loss terms and the token count of a model.
struct LossOutputs {
  std::vector<const GraphOutput*> losses;
  ValueId count = kNone;
};

absl::StatusOr<LossOutputs> FindLosses(const Graph& model) {
  LossOutputs found;
  for (const GraphOutput& output : model.outputs()) {
    if (output.kind == OutputKind::kLoss) found.losses.push_back(&output);
    if (output.kind == OutputKind::kReport && output.name == kCountReport)
      found.count = output.value;
  }
  if (!found.losses.empty() && found.count != kNone) return found;
  return absl::InvalidArgumentError(
      "the model has no loss or no report `count` of the tokens it sums over [meaning_v1]");
}

// The model with its nodes as `keep` changes them. Values keep their ids; the result of a node that
// `keep` does not keep is an input.
Graph Changed(const Graph& model, const std::function<bool(Node*)>& keep) {
  GraphBuilder builder(model.name(), model.level());
  builder.set_num_layers(model.num_layers());
  for (const GraphInput& input : model.inputs()) {
    const Value& value = model.value(input.value);
    builder.AddInput(value.name, value.type, input.kind, input.attrs);
  }
  for (Node node : model.nodes()) {
    std::vector<Value> results;
    results.reserve(node.outputs.size());
    for (ValueId id : node.outputs) results.push_back(model.value(id));
    if (keep(&node)) {
      builder.AppendRaw(std::move(node), std::move(results));
    } else {
      for (const Value& value : results) builder.AddInput(value.name, value.type, InputKind::kData);
    }
  }
  for (const GraphOutput& output : model.outputs()) builder.AddOutput(output);
  return std::move(builder).Finish();
}

Graph WithoutDropout(const Graph& model) {
  return Changed(model, [](Node* node) {
    if (node->op->Has(OpRole::kRandom)) node->attrs.Set(kDropAttr, 0.0);
    return true;
  });
}

// The nodes from which a derivative of a loss may come: what stop_gradient returns is given, and
// what only leads to it is left out.
Graph WithStoppedAsInputs(const Graph& model) {
  std::vector<bool> needed(model.values().size(), false);
  const auto is_needed = [&](const Node& node) {
    return !StopsGradient(node) &&
           std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
  };
  for (const GraphOutput& output : model.outputs()) {
    if (output.kind == OutputKind::kLoss) needed[static_cast<size_t>(output.value)] = true;
  }
  for (size_t n = model.nodes().size(); n-- > 0;) {
    const Node& node = model.nodes()[n];
    if (!is_needed(node)) continue;
    for (ValueId id : node.inputs) needed[static_cast<size_t>(id)] = true;
  }
  return Changed(model, [&](Node* node) { return is_needed(*node); });
}

int64_t BatchSize(const Graph& model) {
  for (const GraphInput& input : model.inputs()) {
    if (input.kind != InputKind::kData) continue;
    for (const Dim& dim : model.type(input.value).dims) {
      if (dim.name == kSampleDim) return dim.size;
    }
  }
  return 1;
}

using Reports = std::map<std::string, ResiduePair>;

// What a step reports of its sums: means over the tokens.
Reports MeansOf(Reports sums, ResiduePair tokens, const ResidueModel& scalars) {
  const ResiduePair inverse = scalars.Inv(tokens);
  for (auto& [name, sum] : sums) sum = scalars.Mul(sum, inverse);
  sums[kTokenReport] = tokens;
  return sums;
}

// The update, by its definition: mean gradients, their norm, clip, AdamW.
class UpdateEvaluation {
 public:
  UpdateEvaluation(const Graph& model, const StepInputs& inputs, const ResidueModel& scalars,
                   StepReference* out)
      : model_(model), inputs_(inputs), scalars_(scalars), out_(*out) {}

  // Gradient sums become means, and the step is taken.
  void Run(ResiduePair tokens) {
    const ResiduePair inverse = scalars_.Inv(tokens);
    ResiduePair square;
    for (auto& [name, updated] : out_.params) {
      for (ResiduePair& element : updated.mean_gradient.real) {
        element = scalars_.Mul(element, inverse);
        square = scalars_.Add(square, scalars_.Mul(element, element));
      }
    }
    const ResiduePair norm = scalars_.Fn("sqrt", {square});
    out_.reports[kGradNormReport] = norm;
    const ResidueTensor norm_tensor = Scalar(norm);
    const ResidueTensor max_norm = inputs_.Real(kMaxNormScalar, kScalarType);
    const ResidueTensor clip = RunOp("clip_scale", {}, {&kScalarType, &kScalarType},
                                     {&norm_tensor, &max_norm}, {kScalarType})[0];
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind == InputKind::kParam) Step(input, clip);
    }
  }

 private:
  ResidueTensor Scalar(ResiduePair value) const {
    ResidueTensor tensor = ResidueTensor::Make({}, false);
    tensor.real[0] = value;
    return tensor;
  }

  // Runs an op whose operands have the types given, on one device.
  std::vector<ResidueTensor> RunOp(absl::string_view name, const Attrs& attrs,
                                   const std::vector<const TensorType*>& operands,
                                   const std::vector<const ResidueTensor*>& inputs,
                                   const std::vector<TensorType>& results) const {
    const OpDef* op = FindOp(name);
    MGC_CHECK(op != nullptr) << name;
    std::vector<const TensorType*> made;
    made.reserve(results.size());
    for (const TensorType& type : results) made.push_back(&type);
    absl::StatusOr<FactorRule> rule = RuleOf(*op, OpUse{attrs, operands, made});
    MGC_CHECK(rule.ok()) << rule.status().ToString();
    return EvaluateWhole(scalars_, *op, attrs, *rule, results, inputs, kStepSeed);
  }

  void Step(const GraphInput& input, const ResidueTensor& clip) {
    const std::string& name = model_.value(input.value).name;
    const TensorType& type = model_.type(input.value);
    UpdatedParam& updated = out_.params[name];
    if (!IsTrained(input.attrs)) {
      updated.param = inputs_.Real(name, type);
      return;
    }
    const OpDef* adamw = FindOp("adamw");
    MGC_CHECK(adamw != nullptr);
    std::vector<ResidueTensor> tensors = {inputs_.Real(name, type), updated.mean_gradient,
                                          inputs_.Real(FirstMomentName(name), type),
                                          inputs_.Real(SecondMomentName(name), type)};
    std::vector<const TensorType*> types(4, &type);
    for (size_t i = tensors.size(); i < adamw->operands.size(); ++i) {
      const std::string& operand = adamw->operands[i];
      tensors.push_back(operand == "clip" ? clip : inputs_.Real(operand, kScalarType));
      types.push_back(&kScalarType);
    }
    std::vector<const ResidueTensor*> operands;
    operands.reserve(tensors.size());
    for (const ResidueTensor& tensor : tensors) operands.push_back(&tensor);
    std::vector<ResidueTensor> made =
        RunOp("adamw", {{"decay", input.attrs.Int("decay")}}, types, operands, {type, type, type});
    updated.param = std::move(made[0]);
    updated.first = std::move(made[1]);
    updated.second = std::move(made[2]);
  }

  const Graph& model_;
  const StepInputs& inputs_;
  const ResidueModel& scalars_;
  StepReference& out_;
};

class StepEvaluation {
 public:
  StepEvaluation(const Graph& model, const StepInputs& inputs, uint64_t key,
                 int64_t num_micro_batches, const std::set<std::string>& started,
                 bool keep_backward)
      : model_(model),
        inputs_(inputs),
        key_(key),
        scalars_(key),
        num_micro_batches_(num_micro_batches),
        started_(started),
        keep_backward_(keep_backward),
        batch_(BatchSize(model)) {}

  absl::StatusOr<StepReference> Run() {
    MGC_ASSIGN_OR_RETURN(outputs_, FindLosses(model_));
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind == InputKind::kParam) params_.push_back(&input);
    }
    for (int64_t m = 0; m < num_micro_batches_; ++m) {
      GraphEvaluator<ResidueModel> forward(model_, scalars_, kStepSeed);
      RunForward(m, &forward);
      Collect(forward, &out_.values, &loss_sums_, &tokens_);
      MGC_ASSIGN_OR_RETURN(
          const auto gradients,
          EagerGradients(model_, forward, scalars_, m * batch_,
                         keep_backward_ ? &out_.backward.emplace_back() : nullptr));
      if (m == 0) CheckGradients(gradients);
      for (const auto& [name, gradient] : gradients) Accumulate(name, gradient);
    }
    out_.reports = MeansOf(loss_sums_, tokens_, scalars_);
    UpdateEvaluation(model_, inputs_, scalars_, &out_).Run(tokens_);
    RunEvaluation();
    Count(scalars_);
    return std::move(out_);
  }

 private:
  const std::string& NameOf(ValueId id) const { return model_.value(id).name; }

  template <class M>
  void SetData(int64_t micro_batch, GraphEvaluator<M>* forward) const {
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind != InputKind::kData) continue;
      const ResidueTensor* data = inputs_.Data(NameOf(input.value), micro_batch);
      auto tensor = HostTensor<typename M::Scalar>::Make(data->shape, data->is_index);
      tensor.index = data->index;
      for (size_t i = 0; i < tensor.real.size(); ++i) Assign(data->real[i], &tensor.real[i]);
      forward->Set(input.value, tensor);
    }
  }
  static void Assign(ResiduePair from, ResiduePair* to) { *to = from; }
  static void Assign(ResiduePair from, DualPair* to) { to->value = from; }

  void RunForward(int64_t micro_batch, GraphEvaluator<ResidueModel>* forward) const {
    for (const GraphInput* input : params_) {
      forward->Set(input->value, inputs_.Real(NameOf(input->value), model_.type(input->value)));
    }
    SetData(micro_batch, forward);
    forward->Run({Phase::kForward}, micro_batch * batch_);
  }

  // The name under which a step reports a loss term.
  std::string LossReport(size_t i) const { return i == 0 ? kLossReport : outputs_.losses[i]->name; }

  // Keeps all values of a forward pass, and adds its losses and tokens.
  void Collect(const GraphEvaluator<ResidueModel>& forward,
               std::vector<std::map<std::string, ResidueTensor>>* values, Reports* sums,
               ResiduePair* tokens) {
    Count(forward.model());
    std::map<std::string, ResidueTensor>& kept = values->emplace_back();
    for (size_t v = 0; v < model_.values().size(); ++v) {
      if (model_.values()[v].producer == kNone) continue;
      kept[model_.values()[v].name] = forward.Whole(static_cast<ValueId>(v));
    }
    const auto scalar = [&](ValueId id) { return forward.Tile(id, 0).real[0]; };
    for (size_t i = 0; i < outputs_.losses.size(); ++i) {
      ResiduePair& sum = (*sums)[LossReport(i)];
      sum = scalars_.Add(sum, scalar(outputs_.losses[i]->value));
    }
    *tokens = scalars_.Add(*tokens, scalar(outputs_.count));
  }

  void Count(const ResidueModel& scalars) {
    out_.calls += scalars.calls();
    out_.zero_denominators += scalars.zero_denominators();
  }

  void Accumulate(const std::string& name, const ResidueTensor& gradient) {
    ResidueTensor& sum = out_.params[name].mean_gradient;
    if (sum.real.empty() && started_.count(name) > 0) {
      sum = inputs_.Real(StartName(name), model_.type(model_.FindValue(name)));
    }
    if (sum.real.empty()) {
      sum = gradient;
      return;
    }
    for (size_t i = 0; i < sum.real.size(); ++i) {
      sum.real[i] = scalars_.Add(sum.real[i], gradient.real[i]);
    }
  }

  // The derivative of the first micro-batch's loss along random tangents of all trained parameters.
  // What stop_gradient returns is a constant.
  void CheckGradients(const std::map<std::string, ResidueTensor>& gradients) {
    const Graph model = WithStoppedAsInputs(model_);
    GraphEvaluator<DualModel> forward(model, DualModel(key_), kStepSeed);
    ResiduePair expected;
    for (const GraphInput* input : params_) {
      const std::string& name = NameOf(input->value);
      const TensorType& type = model_.type(input->value);
      const ResidueTensor value = inputs_.Real(name, type);
      const ResidueTensor tangent = inputs_.Real(absl::StrCat(name, "/tangent"), type);
      auto dual = HostTensor<DualPair>::Make(value.shape, false);
      const auto gradient = gradients.find(name);  // none of what is not trained
      for (size_t i = 0; i < dual.real.size(); ++i) {
        dual.real[i].value = value.real[i];
        if (gradient == gradients.end()) continue;
        dual.real[i].tangent = tangent.real[i];
        expected = scalars_.Add(expected, scalars_.Mul(gradient->second.real[i], tangent.real[i]));
      }
      forward.Set(input->value, dual);
    }
    SetData(0, &forward);
    for (const Node& node : model_.nodes()) {
      if (StopsGradient(node)) SetConstant(node.outputs[0], &forward);
    }
    forward.Run({Phase::kForward}, 0);
    ResiduePair derivative;
    for (const GraphOutput* loss : outputs_.losses) {
      const ResiduePair tangent = forward.Tile(loss->value, 0).real[0].tangent;
      derivative = scalars_.Add(derivative, scalars_.Mul(scalars_.Constant(loss->weight), tangent));
    }
    out_.gradients_hold = derivative == expected && forward.model().missing_derivatives() == 0;
  }

  // To what the first micro-batch made of it.
  void SetConstant(ValueId id, GraphEvaluator<DualModel>* forward) const {
    const ResidueTensor& value = out_.values[0].at(NameOf(id));
    auto dual = HostTensor<DualPair>::Make(value.shape, false);
    for (size_t i = 0; i < dual.real.size(); ++i) dual.real[i].value = value.real[i];
    forward->Set(id, dual);
  }

  void RunEvaluation() {
    const Graph model = WithoutDropout(model_);
    Reports sums;
    ResiduePair tokens;
    for (int64_t m = 0; m < num_micro_batches_; ++m) {
      GraphEvaluator<ResidueModel> forward(model, scalars_, kStepSeed);
      RunForward(m, &forward);
      Collect(forward, &out_.eval_values, &sums, &tokens);
    }
    out_.eval_reports = MeansOf(sums, tokens, scalars_);
  }

  const Graph& model_;
  const StepInputs& inputs_;
  const uint64_t key_;
  const ResidueModel scalars_;
  const int64_t num_micro_batches_;
  const std::set<std::string>& started_;
  const bool keep_backward_;
  const int64_t batch_;
  LossOutputs outputs_;
  std::vector<const GraphInput*> params_;
  Reports loss_sums_;
  ResiduePair tokens_;
  StepReference out_;
};

}  // namespace

std::string StartName(const std::string& param) { return absl::StrCat(param, "/start"); }

absl::StatusOr<StepReference> EvaluateStep(const Graph& model, const StepInputs& inputs,
                                           uint64_t key, int64_t num_micro_batches,
                                           const std::set<std::string>& started,
                                           bool keep_backward) {
  return StepEvaluation(model, inputs, key, num_micro_batches, started, keep_backward).Run();
}

}  // namespace mgc
