#include "graph/verify/meaning/eager_gradient.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/eval/evaluate_op.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/verify/meaning/reference.h"

namespace mgc {
namespace {

// Values of the model keep their numbers; what rules emit is numbered behind them.
class EagerBackward : public GradContext {
 public:
  EagerBackward(const Graph& model, const GraphEvaluator<ResidueModel>& forward,
                const ResidueModel& scalars, int64_t first_sample)
      : model_(model),
        forward_(forward),
        scalars_(scalars),
        first_sample_(first_sample),
        trained_(model.values().size(), false),
        gradients_(model.values().size()) {}

  // Of the losses times `scale`.
  absl::StatusOr<std::map<std::string, ResidueTensor>> Run(ResiduePair scale) {
    FindTrained();
    for (const GraphOutput& output : model_.outputs()) {
      if (output.kind != OutputKind::kLoss) continue;
      ResidueTensor seed = Room(model_.type(output.value));
      for (ResiduePair& element : seed.real) element = scalars_.Constant(output.weight);
      ResidueTensor scaled = seed;
      for (ResiduePair& element : scaled.real) element = scalars_.Mul(element, scale);
      Keep(model_.type(output.value), std::move(seed));  // a plan may have it on the way
      gradients_[Index(output.value)].push_back(Keep(model_.type(output.value), std::move(scaled)));
    }
    for (size_t n = model_.nodes().size(); n-- > 0;) {
      node_ = &model_.nodes()[n];
      MGC_RETURN_IF_ERROR(Visit());
    }
    std::map<std::string, ResidueTensor> result;
    for (const GraphInput& input : model_.inputs()) {
      if (input.kind != InputKind::kParam || !IsTrained(input.attrs)) continue;
      const ValueId sum = Sum(input.value);
      result[model_.value(input.value).name] = Logical(model_.type(input.value), sum);
    }
    return result;
  }

  void AddAll(BackwardValues* all) const {
    for (size_t v = 0; v < model_.values().size() + emitted_.size(); ++v) {
      const ValueId id = static_cast<ValueId>(v);
      if (type(id).dtype != DType::kI64) all->Add(Logical(type(id), id));
    }
  }

  const Attrs& attrs() const override { return node_->attrs; }
  int num_inputs() const override { return static_cast<int>(node_->inputs.size()); }
  ValueId input(int i) const override { return node_->inputs[static_cast<size_t>(i)]; }
  ValueId output(int i) const override { return node_->outputs[static_cast<size_t>(i)]; }
  ValueId output_grad(int i) const override { return output_grads_[static_cast<size_t>(i)]; }
  const TensorType& type(ValueId value) const override {
    return IsOfModel(value) ? model_.type(value) : emitted_[Emitted(value)].type;
  }
  bool wants(int i) const override { return trained_[Index(input(i))]; }

  std::vector<ValueId> EmitAll(absl::string_view op_name, std::vector<ValueId> inputs,
                               Attrs attrs) override {
    const OpDef* op = FindOp(op_name);
    MGC_CHECK(op != nullptr) << op_name;
    std::vector<const TensorType*> operands;
    operands.reserve(inputs.size());
    for (ValueId id : inputs) operands.push_back(&type(id));
    absl::StatusOr<std::vector<TensorType>> types = InferTypes(*op, attrs, operands);
    if (!types.ok()) return Refuse(types.status(), *op);
    std::vector<const TensorType*> results;
    for (const TensorType& made : *types) results.push_back(&made);
    absl::StatusOr<FactorRule> rule = RuleOf(*op, OpUse{attrs, operands, results});
    if (!rule.ok()) return Refuse(rule.status(), *op);
    std::vector<ResidueTensor> tensors;
    for (const TensorType& made : *types) {
      tensors.push_back(Room(made));
    }
    std::vector<const ResidueTensor*> operand_tensors;
    operand_tensors.reserve(inputs.size());
    for (ValueId id : inputs) operand_tensors.push_back(&TensorOf(id));
    EvaluateOp(scalars_, *op, attrs, *rule, WholePieces(*rule, first_sample_), kStepSeed,
               std::move(operand_tensors), &tensors);
    std::vector<ValueId> ids;
    for (size_t r = 0; r < tensors.size(); ++r) {
      ids.push_back(Keep((*types)[r], std::move(tensors[r])));
    }
    return ids;
  }

  void Add(int i, ValueId gradient) override {
    if (!wants(i)) return;
    if (SizesOf(type(gradient)) != SizesOf(type(input(i)))) {
      refused_.Update(absl::InvalidArgumentError("is of another size"));
      return;
    }
    gradients_[Index(input(i))].push_back(gradient);
  }

 private:
  struct EmittedValue {
    TensorType type;
    ResidueTensor tensor;
  };

  // A rule that emits what no op takes ends the evaluation; until then it gets numbers to go on.
  std::vector<ValueId> Refuse(const absl::Status& status, const OpDef& op) {
    refused_.Update(status);
    std::vector<ValueId> ids;
    for (size_t r = 0; r < op.results.size(); ++r) {
      const TensorType scalar = {DType::kF64, {}};
      ids.push_back(Keep(scalar, Room(scalar)));
    }
    return ids;
  }

  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  bool IsOfModel(ValueId id) const { return Index(id) < model_.values().size(); }
  size_t Emitted(ValueId id) const { return Index(id) - model_.values().size(); }
  const ResidueTensor& TensorOf(ValueId id) const {
    return IsOfModel(id) ? forward_.Tile(id, 0) : emitted_[Emitted(id)].tensor;
  }
  ValueId Keep(const TensorType& type, ResidueTensor tensor) {
    emitted_.push_back({type, std::move(tensor)});
    return static_cast<ValueId>(model_.values().size() + emitted_.size() - 1);
  }

  // Zeros with the room that one device makes for a tensor: padding included.
  static ResidueTensor Room(const TensorType& type) {
    return ResidueTensor::Make(LocalShape(type, Sharding::Whole(type.ndim()), Mesh()),
                               type.dtype == DType::kI64);
  }

  // The tensor without its padding; zeros for kNone.
  ResidueTensor Logical(const TensorType& type, ValueId id) const {
    ResidueTensor whole = ResidueTensor::Make(SizesOf(type), false);
    if (id == kNone) return whole;
    const ResidueTensor& tile = TensorOf(id);
    ForEachRun(
        type, Sharding::Whole(type.ndim()), Mesh(), 0,
        [&](int64_t at, int64_t to, int64_t count) { CopyElements(tile, at, count, &whole, to); });
    return whole;
  }

  void FindTrained() {
    for (const GraphInput& input : model_.inputs()) {
      trained_[Index(input.value)] = input.kind == InputKind::kParam && IsTrained(input.attrs);
    }
    for (const Node& node : model_.nodes()) {
      if (node.op->grad == nullptr) continue;
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return trained_[Index(id)]; });
      for (ValueId id : node.outputs) {
        trained_[Index(id)] = any && model_.type(id).dtype != DType::kI64;
      }
    }
  }

  // The sum of all contributions to a value's gradient; kNone without any.
  ValueId Sum(ValueId id) {
    const std::vector<ValueId>& terms = gradients_[Index(id)];
    if (terms.size() < 2) return terms.empty() ? kNone : terms[0];
    ResidueTensor sum = TensorOf(terms[0]);
    for (size_t t = 1; t < terms.size(); ++t) {
      const ResidueTensor& term = TensorOf(terms[t]);
      for (size_t i = 0; i < sum.real.size(); ++i) {
        sum.real[i] = scalars_.Add(sum.real[i], term.real[i]);
      }
    }
    return Keep(model_.type(id), std::move(sum));
  }

  absl::Status Visit() {
    const bool any_trained = std::any_of(node_->outputs.begin(), node_->outputs.end(),
                                         [&](ValueId id) { return trained_[Index(id)]; });
    if (!any_trained) return absl::OkStatus();
    output_grads_.clear();
    bool any = false;
    for (ValueId id : node_->outputs) {
      output_grads_.push_back(Sum(id));
      any |= output_grads_.back() != kNone;
    }
    if (!any) return absl::OkStatus();
    const absl::Status status = node_->op->grad(*this);
    refused_.Update(status);
    return Annotate(refused_, absl::StrCat("gradient of ", node_->op->name));
  }

  const Graph& model_;
  const GraphEvaluator<ResidueModel>& forward_;
  const ResidueModel& scalars_;
  const int64_t first_sample_;
  std::vector<bool> trained_;
  std::vector<std::vector<ValueId>> gradients_;  // contributions, by value of the model
  std::deque<EmittedValue> emitted_;             // their addresses stay
  absl::Status refused_;                         // why a rule cannot be followed
  const Node* node_ = nullptr;                   // being visited
  std::vector<ValueId> output_grads_;
};

}  // namespace

absl::StatusOr<std::map<std::string, ResidueTensor>> EagerGradients(
    const Graph& model, const GraphEvaluator<ResidueModel>& forward, const ResidueModel& scalars,
    ResiduePair scale, int64_t first_sample, BackwardValues* all) {
  EagerBackward backward(model, forward, scalars, first_sample);
  absl::StatusOr<std::map<std::string, ResidueTensor>> gradients = backward.Run(scale);
  if (gradients.ok() && all != nullptr) backward.AddAll(all);
  return gradients;
}

}  // namespace mgc
