#include "passes/graph/differentiate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/step_terms.h"

namespace mgc {
namespace {

const TensorType kScalar{DType::kF64, {}};

// Appends backward: walks the forward nodes in reverse and collects contributions per value.
class Backward : public GradContext {
 public:
  explicit Backward(GraphBuilder* builder)
      : builder_(builder), trained_(Trained(builder->graph())), grads_(trained_.size()) {}

  absl::Status Run(const StepTerms& terms) {
    const std::vector<Node> forward = builder_->graph().nodes();
    for (const LossTerm& loss : terms.losses) Seed(loss);
    for (size_t n = forward.size(); n-- > 0;) MGC_RETURN_IF_ERROR(Visit(forward[n]));
    return absl::OkStatus();
  }

  // Contributions to a value's gradient with the place of the use, in order of use.
  struct Use {
    ValueId gradient;
    Node like;
  };
  std::vector<Use> UsesOf(ValueId primal) const {
    return {grads_[Index(primal)].rbegin(), grads_[Index(primal)].rend()};
  }

  // One contribution for every layer that uses a value, in order of use: what one layer contributes
  // is added there, in the place of its first use, the last that backward comes to.
  std::vector<Use> SumsByLayer(ValueId primal) {
    std::vector<std::vector<Use>> layers;
    for (const Use& use : UsesOf(primal)) {
      const auto same = std::find_if(layers.begin(), layers.end(), [&](const auto& uses) {
        return uses[0].like.layer == use.like.layer;
      });
      if (same == layers.end()) {
        layers.push_back({use});
      } else {
        same->push_back(use);
      }
    }
    std::vector<Use> sums;
    for (const std::vector<Use>& uses : layers)
      sums.push_back({Added(primal, uses, uses[0].like, ""), uses[0].like});
    return sums;
  }

  // Names gradients after their primals, now that all uses are known: `%x.grad`, or `%x.grad.1`,
  // `%x.grad.2` in order of use where several are added. What a rule makes on the way keeps the
  // name of the gradient it starts from, and its op's: `%y.grad.mul`.
  void NameGradients(Rewriter* rewriter) const {
    for (size_t v = 0; v < grads_.size(); ++v) {
      const ValueId primal = static_cast<ValueId>(v);
      const std::vector<Use> uses = UsesOf(primal);
      for (size_t i = 0; i < uses.size(); ++i) {
        if (builder_->graph().value(uses[i].gradient).primal != primal) continue;
        const std::string number = uses.size() == 1 ? "" : absl::StrCat(".", i + 1);
        rewriter->Rename(uses[i].gradient, GradientName(primal) + number);
      }
    }
  }

  const Attrs& attrs() const override { return node_->attrs; }
  int num_inputs() const override { return static_cast<int>(node_->inputs.size()); }
  ValueId input(int i) const override { return node_->inputs[static_cast<size_t>(i)]; }
  ValueId output(int i) const override { return node_->outputs[static_cast<size_t>(i)]; }
  ValueId output_grad(int i) const override { return output_grads_[static_cast<size_t>(i)]; }
  const TensorType& type(ValueId value) const override { return builder_->graph().type(value); }
  bool wants(int i) const override { return trained_[Index(input(i))]; }

  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                               Attrs attrs) override {
    const std::string name = absl::StrCat(GradientName(node_->outputs[0]), ".", op);
    absl::StatusOr<std::vector<ValueId>> made =
        builder_->Append(op, std::move(inputs), std::move(attrs), place_, {name});
    MGC_CHECK(made.ok()) << "gradient of " << node_->op->name << ": " << made.status().ToString();
    return *std::move(made);
  }

  void Add(int i, ValueId gradient) override {
    if (!wants(i)) return;
    grads_[Index(input(i))].push_back({gradient, place_});
    if (builder_->graph().value(gradient).primal == kNone) {
      builder_->SetPrimal(gradient, input(i));
    }
  }

 private:
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }

  std::string GradientName(ValueId primal) const {
    return absl::StrCat(builder_->graph().value(primal).name, ".grad");
  }

  static std::vector<bool> Trained(const Graph& graph) {
    std::vector<bool> trained(graph.values().size(), false);
    for (const GraphInput& input : graph.inputs()) {
      trained[Index(input.value)] = input.kind == InputKind::kParam;
    }
    for (const Node& node : graph.nodes()) {
      if (!node.op->grad) continue;
      bool any = false;
      for (ValueId id : node.inputs) any = any || trained[Index(id)];
      for (ValueId id : node.outputs) {
        trained[Index(id)] = any && graph.type(id).dtype != DType::kI64;
      }
    }
    return trained;
  }

  void Seed(const LossTerm& loss) {
    const Graph& graph = builder_->graph();
    Node like = graph.node(graph.value(loss.value).producer);
    like.phase = Phase::kBackward;
    like.origin = "seed of the loss";
    const ValueId seed = builder_->Emit("constant", {}, {{"value", loss.weight}}, like,
                                        absl::StrCat(graph.value(loss.value).name, ".seed"));
    grads_[Index(loss.value)].push_back({seed, like});
  }

  // The whole gradient of a value. What each layer contributes is added there to what the layers
  // above have: one gradient crosses a pipeline cut, wherever the value is read.
  ValueId Sum(ValueId id) {
    std::map<int, std::vector<Use>, std::greater<int>> by_layer;
    for (const Use& use : grads_[Index(id)]) by_layer[use.like.layer].push_back(use);
    ValueId sum = kNone;
    for (const auto& [layer, uses] : by_layer) {
      const Node& like = uses[0].like;
      std::vector<Use> terms = uses;
      if (sum != kNone) terms.insert(terms.begin(), {sum, like});
      const bool whole = layer == by_layer.rbegin()->first;
      sum = Added(id, terms, like, whole ? "" : ".above");
    }
    return sum;
  }

  // Contributions to the gradient of `primal`, at least one, added in one place; `part` says of
  // which, where they are not all.
  ValueId Added(ValueId primal, const std::vector<Use>& uses, const Node& like,
                absl::string_view part) {
    if (uses.size() == 1) return uses[0].gradient;
    std::vector<ValueId> terms;
    for (const Use& use : uses) terms.push_back(use.gradient);
    const ValueId sum =
        builder_->Emit("add", std::move(terms), {}, like, GradientName(primal) + std::string(part));
    builder_->SetPrimal(sum, primal);
    return sum;
  }

  absl::Status Visit(const Node& node) {
    if (std::none_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return trained_[Index(id)]; })) {
      return absl::OkStatus();
    }
    node_ = &node;
    output_grads_.clear();
    bool any = false;
    for (ValueId id : node.outputs) {
      output_grads_.push_back(Sum(id));
      any = any || output_grads_.back() != kNone;
    }
    if (!any) return absl::OkStatus();
    place_ = node;
    place_.phase = Phase::kBackward;
    place_.origin =
        absl::StrCat("gradient of ", node.op->name, node.origin.empty() ? "" : " in ", node.origin);
    return Annotate(node.op->grad(*this), absl::StrCat("gradient of ", node.op->name));
  }

  GraphBuilder* builder_;
  std::vector<bool> trained_;            // by value of the forward graph
  std::vector<std::vector<Use>> grads_;  // likewise
  const Node* node_ = nullptr;           // being visited
  Node place_;                           // where its gradient nodes go
  std::vector<ValueId> output_grads_;
};

// Appends accumulators and the update.
class Update {
 public:
  explicit Update(GraphBuilder* builder) : builder_(builder) { update_.phase = Phase::kUpdate; }

  // Sums losses and tokens over the step, in one vector, and reports means.
  void ReportLoss(const StepTerms& terms) {
    std::vector<ValueId> sums;
    for (const LossTerm& loss : terms.losses) {
      sums.push_back(Accumulate(absl::StrCat(loss.report, "/sum"), loss.value, loss.report));
    }
    sums.push_back(Accumulate(absl::StrCat(kTokenReport, "/sum"), terms.count, kTokenReport));
    update_.origin = "report";
    const int64_t num_losses = static_cast<int64_t>(terms.losses.size());
    const ValueId all =
        Resolved(builder_->Emit("stack", std::move(sums), {}, update_, "loss_and_tokens"), "loss");
    const ValueId tokens = Entry(all, num_losses, kTokenReport);
    inverse_tokens_ = builder_->Emit("inv", {tokens}, {}, update_, "tokens.inv");
    for (int64_t i = 0; i < num_losses; ++i) {
      const std::string& report = terms.losses[static_cast<size_t>(i)].report;
      const ValueId total = Entry(all, i, absl::StrCat(report, ".total"));
      Report(report, builder_->Emit("mul", {total, inverse_tokens_}, {}, update_,
                                    absl::StrCat(report, ".mean")));
    }
    Report(kTokenReport, tokens);
  }

  absl::Status StepParameters(Backward* backward) {
    backward_ = backward;
    for (const char* name : kUpdateScalars) {
      scalars_.push_back(builder_->AddInput(name, kScalar, InputKind::kScalar));
    }
    std::vector<ValueId> params;
    for (const GraphInput& input : builder_->graph().inputs()) {
      if (input.kind == InputKind::kParam) params.push_back(input.value);
    }
    std::vector<ValueId> gradients;
    gradients.reserve(params.size());
    for (ValueId param : params) gradients.push_back(MeanGradient(param));
    if (squares_.empty()) {
      return absl::InvalidArgumentError(
          "the loss depends on no parameter: there is nothing to train [differentiate_c2]");
    }
    MGC_RETURN_IF_ERROR(CheckTrained(params, gradients));
    const ValueId norm = Norm();
    clip_ = builder_->Emit("clip_scale", {norm, scalars_[7]}, {}, update_, "clip");
    for (size_t i = 0; i < params.size(); ++i) {
      if (gradients[i] != kNone) Step(params[i], gradients[i]);
    }
    Report(kGradNormReport, norm);
    return absl::OkStatus();
  }

 private:
  // What nothing trains is a mistake: a model says so with data.
  absl::Status CheckTrained(const std::vector<ValueId>& params,
                            const std::vector<ValueId>& gradients) const {
    Diagnostics untrained;
    for (size_t i = 0; i < params.size(); ++i) {
      if (gradients[i] != kNone) continue;
      const std::string& name = builder_->graph().value(params[i]).name;
      untrained.Add("differentiate_c4", absl::StrCat("%", EscapeBytes(name)),
                    "is a parameter of which no loss has a gradient");
    }
    return untrained.ToStatus();
  }

  void Report(const std::string& name, ValueId value) {
    builder_->AddOutput({value, OutputKind::kReport, name, kNone, 1.0});
  }
  void Assign(ValueId target, ValueId value) {
    builder_->AddOutput(
        {value, OutputKind::kAssign, builder_->graph().value(target).name, target, 1.0});
  }

  // A state of `term`'s type that collects it over micro-batches, in the place of its producer.
  ValueId AccumulateAt(const std::string& name, ValueId term, const std::string& of, Node like) {
    like.origin = "accumulator";
    const ValueId state = builder_->AddInput(name, builder_->graph().type(term),
                                             InputKind::kAccumulator, {{"of", of}});
    const ValueId next =
        builder_->Emit("accumulate", {state, term}, {}, like, absl::StrCat(name, ".next"));
    Assign(state, next);
    return next;
  }
  ValueId Accumulate(const std::string& name, ValueId term, const std::string& of) {
    return AccumulateAt(name, term, of,
                        builder_->graph().node(builder_->graph().value(term).producer));
  }

  // Known as a whole to every rank; reports call what that takes `label`.
  ValueId Resolved(ValueId value, const std::string& label) {
    return builder_->Emit("reshard", {value}, {{kLabelAttr, label}}, update_,
                          absl::StrCat(builder_->graph().value(value).name, ".resolved"));
  }
  ValueId Entry(ValueId vector, int64_t i, const std::string& name) {
    const ValueId entry =
        builder_->Emit("slice", {vector}, {{"dim", int64_t{0}}, {"begin", i}, {"end", i + 1}},
                       update_, absl::StrCat(name, ".entry"));
    return builder_->Emit("total", {entry}, {}, update_, name);
  }

  // Where a parameter is updated: the layer of its first use, with a gradient or without.
  int HomeLayer(ValueId param) const {
    const std::vector<Node>& nodes = builder_->graph().nodes();
    const auto first = std::find_if(nodes.begin(), nodes.end(), [param](const Node& node) {
      return std::find(node.inputs.begin(), node.inputs.end(), param) != node.inputs.end();
    });
    return first == nodes.end() ? kNoLayer : first->layer;
  }

  ValueId MeanGradient(ValueId param) {
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
    const ValueId resolved =
        builder_->Emit("reshard", {sum}, {{kLabelAttr, std::string("gradient")}}, update_,
                       absl::StrCat(GradName(name), ".resolved"));
    builder_->SetPrimal(resolved, param);
    const ValueId mean =
        builder_->Emit("mul", {resolved, inverse_tokens_}, {}, update_, MeanGradName(name));
    squares_.push_back(builder_->Emit("sum_squares", {mean}, {}, update_,
                                      absl::StrCat(GradName(name), ".square")));
    update_.layer = kNoLayer;
    return mean;
  }

  // sqrt of the sum over parameters of their gradients' squares, through a vector with one entry
  // per parameter: its sum is taken in a fixed order, whatever rank holds which parameter.
  ValueId Norm() {
    update_.origin = "gradient norm";
    const ValueId vector =
        Resolved(builder_->Emit("stack", std::move(squares_), {}, update_, "grad_squares"), "norm");
    const ValueId total = builder_->Emit("total", {vector}, {}, update_, "grad_square");
    return builder_->Emit("sqrt", {total}, {}, update_, kGradNormReport);
  }

  void Step(ValueId param, ValueId gradient) {
    const Value value = builder_->graph().value(param);
    const int64_t decay = builder_->graph().FindInput(param)->attrs.Int("decay");
    const Node like = builder_->graph().node(builder_->graph().value(gradient).producer);
    const ValueId m = builder_->AddInput(FirstMomentName(value.name), value.type, InputKind::kState,
                                         {{"of", value.name}});
    const ValueId v = builder_->AddInput(SecondMomentName(value.name), value.type,
                                         InputKind::kState, {{"of", value.name}});
    std::vector<ValueId> operands = {param, gradient, m, v};
    operands.insert(operands.end(), scalars_.begin(), scalars_.end() - 1);
    operands.push_back(clip_);
    absl::StatusOr<std::vector<ValueId>> made =
        builder_->Append("adamw", std::move(operands), {{"decay", decay}}, like,
                         {value.name + ".stepped", FirstMomentName(value.name) + ".next",
                          SecondMomentName(value.name) + ".next"});
    MGC_CHECK(made.ok()) << made.status().ToString();
    const ValueId whole =
        builder_->Emit("reshard", {(*made)[0]}, {{kLabelAttr, std::string("parameter")}}, like,
                       value.name + ".next");
    Assign(param, whole);
    Assign(m, (*made)[1]);
    Assign(v, (*made)[2]);
  }

  GraphBuilder* builder_;
  Backward* backward_ = nullptr;
  Node update_;  // phase and origin of update nodes
  std::vector<ValueId> scalars_;
  std::vector<ValueId> squares_;  // of the parameters' gradients, in order of parameters
  ValueId inverse_tokens_ = kNone;
  ValueId clip_ = kNone;
};

}  // namespace

absl::StatusOr<Graph> Differentiate(const Graph& logical) {
  MGC_RETURN_IF_ERROR(CheckInputs(logical));
  MGC_ASSIGN_OR_RETURN(StepTerms terms, FindTerms(logical));
  GraphBuilder builder(logical);
  builder.set_level(Level::kTraining);
  WidenTerms(&builder, &terms);
  Backward backward(&builder);
  MGC_RETURN_IF_ERROR(backward.Run(terms));
  builder.ClearOutputs();
  Update update(&builder);
  update.ReportLoss(terms);
  MGC_RETURN_IF_ERROR(update.StepParameters(&backward));
  Rewriter named(builder.graph(), Level::kTraining);
  backward.NameGradients(&named);
  for (const Node& node : builder.graph().nodes()) named.Copy(node);
  return std::move(named).Finish();
}

absl::StatusOr<Graph> Evaluation(const Graph& logical) {
  MGC_ASSIGN_OR_RETURN(StepTerms terms, FindTerms(logical));
  Rewriter rewriter(logical, Level::kTraining);
  for (const Node& node : logical.nodes()) {
    Node kept = node;
    const bool random = node.op->Has(OpRole::kRandom);
    if (random) kept.attrs.Set(kDropAttr, 0.0);
    if (random && node.op->identity && node.op->identity(kept.attrs)) {
      rewriter.Map(node.outputs[0], rewriter.Mapped(node.inputs[0]));
    } else {
      rewriter.Copy(kept);
    }
  }
  for (LossTerm& loss : terms.losses) loss.value = rewriter.Mapped(loss.value);
  terms.count = rewriter.Mapped(terms.count);
  GraphBuilder builder(std::move(rewriter).Finish());
  builder.ClearOutputs();
  WidenTerms(&builder, &terms);
  Update(&builder).ReportLoss(terms);
  return std::move(builder).Finish();
}

}  // namespace mgc
