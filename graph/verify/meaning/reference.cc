#include "graph/verify/meaning/reference.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/ir/op.h"
#include "graph/ir/results.h"
#include "graph/ir/step_names.h"
#include "graph/verify/meaning/eager_gradient.h"
#include "graph/verify/meaning/reference_update.h"

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

class StepEvaluation {
 public:
  StepEvaluation(const Graph& model, const StepInputs& inputs, uint64_t key, const StepKind& kind)
      : model_(model),
        inputs_(inputs),
        key_(key),
        scalars_(key),
        kind_(kind),
        batch_(BatchSize(model)) {
    scale_ = kind.scales_loss ? inputs.Real(kLossScale, kScalarType).real[0] : scalars_.Constant(1);
  }

  absl::StatusOr<StepReference> Run() {
    MGC_ASSIGN_OR_RETURN(outputs_, FindLosses(model_));
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind == InputKind::kParam) params_.push_back(&input);
    }
    if (IsAsked(model_)) return RunAsked();
    for (int64_t m = 0; m < kind_.num_micro_batches; ++m) {
      GraphEvaluator<ResidueModel> forward(model_, scalars_, kStepSeed);
      RunForward(m, &forward);
      Collect(forward, &out_.values, &loss_sums_, &tokens_);
      MGC_ASSIGN_OR_RETURN(
          auto gradients,
          EagerGradients(model_, forward, scalars_, scale_, m * batch_,
                         kind_.keep_backward ? &out_.backward.emplace_back() : nullptr));
      if (m == 0) CheckGradients(gradients);
      for (const auto& [name, gradient] : gradients) Accumulate(name, gradient);
    }
    out_.reports = MeansOf(loss_sums_, tokens_, scalars_);
    EvaluateUpdate(model_, inputs_, scalars_, kind_.scales_loss, tokens_, &out_);
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
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind != InputKind::kParam && !IsKeptState(model_, input)) continue;
      forward->Set(input.value, inputs_.Real(NameOf(input.value), model_.type(input.value)));
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
    ResidueTensor& sum = out_.params[name].gradient;
    if (sum.real.empty() && kind_.started.count(name) > 0) {
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

  // The derivative of the first micro-batch's loss along random tangents of all trained parameters;
  // `gradients` are those of the scaled loss.
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
    out_.gradients_hold =
        scalars_.Mul(derivative, scale_) == expected && forward.model().missing_derivatives() == 0;
  }

  // To what the first micro-batch made of it.
  void SetConstant(ValueId id, GraphEvaluator<DualModel>* forward) const {
    const ResidueTensor& value = out_.values[0].at(NameOf(id));
    auto dual = HostTensor<DualPair>::Make(value.shape, false);
    for (size_t i = 0; i < dual.real.size(); ++i) dual.real[i].value = value.real[i];
    forward->Set(id, dual);
  }

  // Its step is what an evaluation of others is.
  StepReference RunAsked() {
    RunEvaluation();
    Count(scalars_);
    out_.reports = std::move(out_.eval_reports);
    out_.values = std::move(out_.eval_values);
    return std::move(out_);
  }

  void RunEvaluation() {
    const Graph model = WithoutDropout(model_);
    Reports sums;
    ResiduePair tokens;
    for (int64_t m = 0; m < kind_.num_micro_batches; ++m) {
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
  const StepKind& kind_;
  const int64_t batch_;
  ResiduePair scale_;  // 1 where the loss is not scaled
  LossOutputs outputs_;
  std::vector<const GraphInput*> params_;
  Reports loss_sums_;
  ResiduePair tokens_;
  StepReference out_;
};

}  // namespace

std::string StartName(const std::string& param) { return absl::StrCat(param, "/start"); }

absl::StatusOr<StepReference> EvaluateStep(const Graph& model, const StepInputs& inputs,
                                           uint64_t key, const StepKind& kind) {
  return StepEvaluation(model, inputs, key, kind).Run();
}

}  // namespace mgc
