#include "passes/graph/optimizer_steps.h"

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "passes/graph/orthogonal.h"

namespace mgc {
namespace {

const TensorType kScalar{DType::kF64, {}};

// The attribute by which a parameter takes a multiple of a scalar; null: none does.
const char* ScaleAttrOf(absl::string_view scalar) {
  if (scalar == kRateScalar) return kRateScaleAttr;
  return scalar == kDecayScalar ? kDecayScaleAttr : nullptr;
}

}  // namespace

void OptimizerSteps::AddScalars() {
  for (const std::string& name : UpdateScalars(builder_.graph())) {
    builder_.AddInput(name, kScalar, InputKind::kScalar);
  }
}

void OptimizerSteps::AddNumbers(ValueId clip, Node like) {
  clip_ = clip;
  like.origin = "parameter groups";
  for (const GraphInput& input : builder_.graph().inputs()) {
    if (input.kind != InputKind::kParam || !IsTrained(input.attrs)) continue;
    for (const char* scalar : {kRateScalar, kDecayScalar}) {
      const double factor = input.attrs.Real(ScaleAttrOf(scalar), 1);
      if (factor == 1) continue;
      const auto [known, is_new] = scaled_.try_emplace({scalar, factor}, kNone);
      if (!is_new) continue;
      known->second = builder_.Emit("scale", {builder_.graph().FindValue(scalar)},
                                    {{"value", factor}}, like, absl::StrCat(scalar, ".", factor));
    }
  }
}

void OptimizerSteps::Step(ValueId param, ValueId gradient) {
  const Value value = builder_.graph().value(param);
  const Attrs attrs = builder_.graph().FindInput(param)->attrs;
  const Optimizer& optimizer = OptimizerOf(attrs);
  const Node like = builder_.graph().node(builder_.graph().value(gradient).producer);
  const bool of_matrices = !optimizer.direction.empty();
  std::vector<ValueId> tensors = {gradient};
  if (!of_matrices) tensors.insert(tensors.begin(), param);
  std::vector<std::string> results = {
      absl::StrCat(value.name, of_matrices ? ".direction" : ".stepped")};
  std::vector<ValueId> states;
  for (const std::string& name : StatesOf(optimizer)) {
    const std::string state = StateName(value.name, name);
    states.push_back(builder_.AddInput(state, value.type, InputKind::kState, {{"of", value.name}}));
    results.push_back(absl::StrCat(state, ".next"));
  }
  tensors.insert(tensors.end(), states.begin(), states.end());
  const std::vector<ValueId> made =
      Run(of_matrices ? optimizer.direction : optimizer.step, tensors, attrs, like, results);
  ValueId stepped = made[0];
  if (of_matrices) {
    const auto row_dims = static_cast<int>(attrs.Int(kRowDimsAttr));
    const ValueId direction = MakeOrthogonal(&builder_, made[0], row_dims, like, value.name);
    stepped = Run(optimizer.step, {param, direction}, attrs, like,
                  {absl::StrCat(value.name, ".stepped")})[0];
  }
  const ValueId whole =
      builder_.Emit("reshard", {stepped}, {{kLabelAttr, std::string("parameter")}}, like,
                    absl::StrCat(value.name, ".next"));
  Assign(param, whole);
  for (size_t i = 0; i < states.size(); ++i) Assign(states[i], made[i + 1]);
}

ValueId OptimizerSteps::NumberFor(const std::string& scalar, const Attrs& of_param) const {
  if (scalar == "clip") return clip_;
  const char* scale = ScaleAttrOf(scalar);
  const auto scaled = scaled_.find({scalar, scale == nullptr ? 1 : of_param.Real(scale, 1)});
  return scaled == scaled_.end() ? builder_.graph().FindValue(scalar) : scaled->second;
}

// An optimizer's op on tensors, and on the step's numbers by the names of its operands.
std::vector<ValueId> OptimizerSteps::Run(absl::string_view name, std::vector<ValueId> tensors,
                                         const Attrs& of_param, const Node& like,
                                         const std::vector<std::string>& results) {
  const OpDef* op = FindOp(name);
  MGC_CHECK(op != nullptr) << name;
  for (size_t i = tensors.size(); i < op->operands.size(); ++i) {
    tensors.push_back(NumberFor(op->operands[i], of_param));
  }
  Attrs attrs;
  for (const AttrSpec& spec : op->attrs) attrs.Set(spec.name, of_param.Int(spec.name));
  absl::StatusOr<std::vector<ValueId>> made =
      builder_.Append(name, std::move(tensors), std::move(attrs), like, results);
  MGC_CHECK(made.ok()) << made.status().ToString();
  return *std::move(made);
}

void OptimizerSteps::Assign(ValueId target, ValueId value) {
  builder_.AddOutput(
      {value, OutputKind::kAssign, builder_.graph().value(target).name, target, 1.0});
}

}  // namespace mgc
