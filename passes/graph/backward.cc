#include "passes/graph/backward.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"

namespace mgc {

Backward::Backward(GraphBuilder* builder)
    : builder_(builder), flow_(builder->graph()), grads_(builder->graph().values().size()) {}

absl::Status Backward::Run(const StepTerms& terms) {
  const std::vector<Node> forward = builder_->graph().nodes();
  for (const LossTerm& loss : terms.losses) Seed(loss);
  for (size_t n = forward.size(); n-- > 0;) MGC_RETURN_IF_ERROR(Visit(forward[n]));
  return absl::OkStatus();
}

std::vector<Backward::Use> Backward::UsesOf(ValueId primal) const {
  return {grads_[Index(primal)].rbegin(), grads_[Index(primal)].rend()};
}

std::vector<Backward::Use> Backward::SumsByLayer(ValueId primal) {
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

void Backward::NameGradients(Rewriter* rewriter) const {
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

std::vector<ValueId> Backward::EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                                       Attrs attrs) {
  const std::string name = absl::StrCat(GradientName(node_->outputs[0]), ".", op);
  absl::StatusOr<std::vector<ValueId>> made =
      builder_->Append(op, std::move(inputs), std::move(attrs), place_, {name});
  MGC_CHECK(made.ok()) << "gradient of " << node_->op->name << ": " << made.status().ToString();
  return *std::move(made);
}

void Backward::Add(int i, ValueId gradient) {
  if (!wants(i)) return;
  grads_[Index(input(i))].push_back({gradient, place_});
  if (builder_->graph().value(gradient).primal == kNone) {
    builder_->SetPrimal(gradient, input(i));
  }
}

std::string Backward::GradientName(ValueId primal) const {
  return absl::StrCat(builder_->graph().value(primal).name, ".grad");
}

void Backward::Seed(const LossTerm& loss) {
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
ValueId Backward::Sum(ValueId id) {
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
ValueId Backward::Added(ValueId primal, const std::vector<Use>& uses, const Node& like,
                        absl::string_view part) {
  if (uses.size() == 1) return uses[0].gradient;
  std::vector<ValueId> terms;
  for (const Use& use : uses) terms.push_back(use.gradient);
  const ValueId sum =
      builder_->Emit("add", std::move(terms), {}, like, absl::StrCat(GradientName(primal), part));
  builder_->SetPrimal(sum, primal);
  return sum;
}

absl::Status Backward::Visit(const Node& node) {
  if (std::none_of(node.outputs.begin(), node.outputs.end(),
                   [&](ValueId id) { return flow_.Moved(id); })) {
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

}  // namespace mgc
