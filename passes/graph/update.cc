#include "passes/graph/update.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"

namespace mgc {
void Update::ReportLoss(const StepTerms& terms) {
  std::vector<ValueId> sums;
  for (const LossTerm& loss : terms.losses) {
    sums.push_back(Accumulate(absl::StrCat(loss.report, "/sum"), loss.value, loss.report));
  }
  sums.push_back(Accumulate(absl::StrCat(kTokenReport, "/sum"), terms.count, kTokenReport));
  update_.origin = "report";
  const int64_t num_losses = static_cast<int64_t>(terms.losses.size());
  const ValueId all =
      Resolved(builder_->Emit("stack", std::move(sums), {}, update_, "loss_and_tokens"), "loss");
  tokens_ = Entry(all, num_losses, kTokenReport);
  const ValueId inverse = builder_->Emit("inv", {tokens_}, {}, update_, "tokens.inv");
  for (int64_t i = 0; i < num_losses; ++i) {
    const std::string& report = terms.losses[static_cast<size_t>(i)].report;
    const ValueId total = Entry(all, i, absl::StrCat(report, ".total"));
    Report(report,
           builder_->Emit("mul", {total, inverse}, {}, update_, absl::StrCat(report, ".mean")));
  }
  Report(kTokenReport, tokens_);
}

absl::Status Update::StepParameters(Backward* backward) {
  backward_ = backward;
  steps_.AddScalars();
  std::vector<ValueId> params;
  bool frozen = false;
  for (const GraphInput& input : builder_->graph().inputs()) {
    if (input.kind != InputKind::kParam) continue;
    if (IsTrained(input.attrs)) params.push_back(input.value);
    frozen = frozen || !IsTrained(input.attrs);
  }
  std::vector<ValueId> gradients;
  gradients.reserve(params.size());
  for (ValueId param : params) gradients.push_back(GradientSum(param));
  if (squares_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the loss depends on no parameter", frozen ? " but such with train=0" : "",
                     ": there is nothing to train [differentiate_c2]"));
  }
  MGC_RETURN_IF_ERROR(CheckTrained(params, gradients));
  const ValueId norm = Norm();
  const ValueId most = builder_->graph().FindValue(kMaxNormScalar);
  const ValueId clip = builder_->Emit("clip_scale", {norm, most}, {}, update_, "clip");
  const ValueId factor = builder_->Emit("mul", {clip, factor_}, {}, update_, "clip.factor");
  steps_.AddNumbers(factor, update_);
  for (size_t i = 0; i < params.size(); ++i) {
    if (gradients[i] != kNone) steps_.Step(params[i], gradients[i]);
  }
  Report(kGradNormReport, norm);
  Report(kGradFactorReport, factor_);
  return absl::OkStatus();
}

// What nothing trains is a mistake: a model says so with train=0, or with data.
absl::Status Update::CheckTrained(const std::vector<ValueId>& params,
                                  const std::vector<ValueId>& gradients) const {
  Diagnostics untrained;
  for (size_t i = 0; i < params.size(); ++i) {
    if (gradients[i] != kNone) continue;
    const std::string& name = builder_->graph().value(params[i]).name;
    untrained.Add("differentiate_c4", absl::StrCat("%", EscapeBytes(name)),
                  "is a parameter of which no loss has a gradient; train=0 keeps it as it is");
  }
  return untrained.ToStatus();
}

void Update::Report(const std::string& name, ValueId value) {
  builder_->AddOutput({value, OutputKind::kReport, name, kNone, 1.0});
}
void Update::Assign(ValueId target, ValueId value) {
  builder_->AddOutput(
      {value, OutputKind::kAssign, builder_->graph().value(target).name, target, 1.0});
}

// A state of `term`'s type that collects it over micro-batches, in the place of its producer.
ValueId Update::AccumulateAt(const std::string& name, ValueId term, const std::string& of,
                             Node like) {
  like.origin = "accumulator";
  const ValueId state =
      builder_->AddInput(name, builder_->graph().type(term), InputKind::kAccumulator, {{"of", of}});
  const ValueId next =
      builder_->Emit("accumulate", {state, term}, {}, like, absl::StrCat(name, ".next"));
  Assign(state, next);
  return next;
}
ValueId Update::Accumulate(const std::string& name, ValueId term, const std::string& of) {
  return AccumulateAt(name, term, of,
                      builder_->graph().node(builder_->graph().value(term).producer));
}

// Known as a whole to every rank; reports call what that takes `label`.
ValueId Update::Resolved(ValueId value, const std::string& label) {
  return builder_->Emit("reshard", {value}, {{kLabelAttr, label}}, update_,
                        absl::StrCat(builder_->graph().value(value).name, ".resolved"));
}
ValueId Update::Entry(ValueId vector, int64_t i, const std::string& name) {
  const ValueId entry =
      builder_->Emit("slice", {vector}, {{"dim", int64_t{0}}, {"begin", i}, {"end", i + 1}},
                     update_, absl::StrCat(name, ".entry"));
  return builder_->Emit("total", {entry}, {}, update_, name);
}

// Where a parameter is updated: the layer of its first use, with a gradient or without.
int Update::HomeLayer(ValueId param) const {
  const std::vector<Node>& nodes = builder_->graph().nodes();
  const auto first = std::find_if(nodes.begin(), nodes.end(), [param](const Node& node) {
    return std::find(node.inputs.begin(), node.inputs.end(), param) != node.inputs.end();
  });
  return first == nodes.end() ? kNoLayer : first->layer;
}

ValueId Update::GradientSum(ValueId param) {
  const std::vector<Backward::Use> uses = backward_->SumsByLayer(param);
  const std::string name = builder_->graph().value(param).name;
  std::vector<ValueId> sums;
  for (size_t i = 0; i < uses.size(); ++i) {
    const std::string suffix = i == 0 ? "" : absl::StrCat(".", i + 1);
    sums.push_back(
        AccumulateAt(absl::StrCat(GradName(name), suffix), uses[i].gradient, name, uses[i].like));
  }
  if (sums.empty()) return kNone;
  update_.layer = HomeLayer(param);
  update_.origin = absl::StrCat("update of ", name);
  ValueId sum = sums[0];
  if (sums.size() > 1) {
    sum = builder_->Emit("add", sums, {}, update_, absl::StrCat(GradName(name), ".sum"));
  }
  const ValueId resolved = builder_->Emit("reshard", {sum}, {{kLabelAttr, std::string("gradient")}},
                                          update_, absl::StrCat(GradName(name), ".resolved"));
  builder_->SetPrimal(resolved, param);
  squares_.push_back(builder_->Emit("sum_squares", {resolved}, {}, update_,
                                    absl::StrCat(GradName(name), ".square")));
  update_.layer = kNoLayer;
  return resolved;
}

// Of the means: sqrt of the sum over parameters of the squares of their sums, times the factor.
// Through a vector with one entry per parameter: its sum is taken in a fixed order, whatever rank
// holds which parameter.
ValueId Update::Norm() {
  update_.origin = "gradient norm";
  const ValueId vector =
      Resolved(builder_->Emit("stack", std::move(squares_), {}, update_, "grad_squares"), "norm");
  const ValueId total = builder_->Emit("total", {vector}, {}, update_, "grad_square");
  const ValueId root = builder_->Emit("sqrt", {total}, {}, update_, "grad_root");
  // A number of its own, not the one that losses are multiplied by: scale_loss puts another in its
  // place.
  factor_ = builder_->Emit("inv", {tokens_}, {}, update_, kGradFactorReport);
  return builder_->Emit("mul", {root, factor_}, {}, update_, kGradNormReport);
}

}  // namespace mgc
