#include "passes/plan/stage/shared_sums.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "passes/graph/rewrite.h"
#include "passes/plan/stage/crossings.h"

namespace mgc {
namespace {

// An operand of a gradient's sum.
struct Term {
  ValueId value = kNone;  // in the given graph; of a given accumulator kNone
  int layer = kNoLayer;   // whose accumulator it comes from
  bool as_it_is = true;   // no op stands between the accumulator and the sum
};

// What a parameter that several classes hold comes to.
struct SharedSum {
  std::set<int> layers;  // that use it
  int home = kNoLayer;   // that is updated: the first of them in the graph
  std::vector<Term> terms;
  NodeId sum = kNone;  // kNone: a lone accumulator
};

class SumGiver {
 public:
  SumGiver(const Graph& graph, const LayerPlacement& placement, const LayerMap& layers)
      : graph_(graph), placement_(placement), stage_of_(StagesByLayer(placement, layers)) {}

  absl::optional<Graph> Run() {
    FindUses();
    if (sums_.empty()) return absl::nullopt;
    FindTerms();
    for (auto it = sums_.begin(); it != sums_.end();) {
      it = Complete(&it->second) ? std::next(it) : sums_.erase(it);
    }
    if (sums_.empty()) return absl::nullopt;
    return Rewritten();
  }

 private:
  int ClassOf(int layer) const {
    const auto stage = stage_of_.find(layer);
    const size_t at = stage == stage_of_.end() ? 0 : static_cast<size_t>(stage->second);
    return placement_.places[at].rank_class;
  }

  // The trained parameters that layers of several classes use.
  void FindUses() {
    std::map<ValueId, SharedSum> uses;
    for (const Node& node : graph_.nodes()) {
      if (node.phase == Phase::kUpdate) continue;
      for (const ValueId id : node.inputs) {
        if (graph_.value(id).producer != kNone) continue;
        SharedSum& use = uses[id];
        if (use.layers.empty()) use.home = node.layer;
        use.layers.insert(node.layer);
      }
    }
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kParam || !IsTrained(input.attrs)) continue;
      const SharedSum& use = uses[input.value];
      const bool shared = std::any_of(use.layers.begin(), use.layers.end(), [&](int layer) {
        return ClassOf(layer) != ClassOf(use.home);
      });
      if (shared) sums_.emplace(input.value, use);
    }
  }

  void FindTerms() {
    for (const GraphOutput& output : graph_.outputs()) {
      const GraphInput* target =
          output.kind == OutputKind::kAssign ? graph_.FindInput(output.target) : nullptr;
      if (target == nullptr || target->kind != InputKind::kAccumulator) continue;
      const ValueId param = graph_.FindValue(target->attrs.Text("of"));
      if (sums_.count(param) > 0) param_of_[output.value] = param;
    }
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (node.phase != Phase::kUpdate || !node.op->Has(OpRole::kSum)) continue;
      const std::vector<Term> terms = TermsOf(node);
      if (terms.empty()) continue;
      SharedSum& shared = sums_[param_of_.at(AccumulatedIn(node.inputs[0]))];
      shared.terms = terms;
      shared.sum = static_cast<NodeId>(n);
    }
    for (const auto& [value, param] : param_of_) {
      SharedSum& shared = sums_[param];
      if (shared.sum == kNone) shared.terms = {TermOf(value)};
    }
  }

  // The end of backward that a value of the update comes from, by first operands.
  ValueId AccumulatedIn(ValueId id) const {
    for (;;) {
      const NodeId producer = graph_.value(id).producer;
      if (producer == kNone || graph_.node(producer).phase != Phase::kUpdate) return id;
      if (graph_.node(producer).inputs.empty()) return kNone;
      id = graph_.node(producer).inputs[0];
    }
  }

  Term TermOf(ValueId id) const {
    const ValueId accumulated = AccumulatedIn(id);
    const NodeId producer = graph_.value(accumulated).producer;
    return {id, graph_.node(producer).layer, accumulated == id};
  }

  // Empty where the node does not sum the gradients of a shared parameter.
  std::vector<Term> TermsOf(const Node& node) const {
    std::vector<Term> terms;
    for (const ValueId id : node.inputs) {
      if (param_of_.count(AccumulatedIn(id)) == 0) return {};
      terms.push_back(TermOf(id));
    }
    return terms;
  }

  // Adds what classes lack and puts the terms in order. False where they were complete.
  bool Complete(SharedSum* shared) {
    const std::vector<Term> before = shared->terms;
    if (before.empty()) return false;
    std::set<int> classes;
    for (const Term& term : before) {
      if (term.as_it_is) classes.insert(ClassOf(term.layer));
    }
    for (const int layer : shared->layers) {
      if (classes.insert(ClassOf(layer)).second) shared->terms.push_back({kNone, layer, true});
    }
    // The first operand is in the memory of the class that owns the parameter.
    const auto rank = [&](const Term& term) {
      return std::make_tuple(!term.as_it_is, ClassOf(term.layer) != ClassOf(shared->home),
                             term.layer);
    };
    const bool mixed =
        std::any_of(before.begin(), before.end(), [](const Term& term) { return !term.as_it_is; });
    if (shared->terms.size() == before.size() && !mixed) return false;
    std::stable_sort(shared->terms.begin(), shared->terms.end(),
                     [&](const Term& a, const Term& b) { return rank(a) < rank(b); });
    return true;
  }

  Graph Rewritten() {
    Rewriter rewriter(graph_, graph_.level());
    std::map<NodeId, ValueId> summed;  // parameters, by the node that adds their gradients
    for (const auto& [param, shared] : sums_) {
      given_[param] = Give(param, shared, &rewriter);
      if (shared.sum != kNone) summed[shared.sum] = param;
      if (shared.sum == kNone) lone_[Known(shared).value] = param;
    }
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      const auto sum = summed.find(static_cast<NodeId>(n));
      rewriter.CopyReading(
          node, sum != summed.end() ? Operands(sum->second, rewriter) : Inputs(node, &rewriter));
    }
    return std::move(rewriter).Finish();
  }

  // What a node reads; for a lone accumulator the update reads its sum with those that are given.
  std::vector<ValueId> Inputs(const Node& node, Rewriter* rewriter) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      const auto lone = lone_.find(id);
      if (node.phase != Phase::kUpdate || lone == lone_.end()) {
        inputs.push_back(rewriter->Mapped(id));
        continue;
      }
      const auto [sum, is_new] = sum_of_lone_.try_emplace(id, kNone);
      if (is_new) {
        const std::string name = absl::StrCat(GradName(graph_.value(lone->second).name), ".sum");
        sum->second =
            rewriter->builder().Emit("add", Operands(lone->second, *rewriter), {}, node, name);
        rewriter->builder().SetSharding(sum->second, *graph_.value(id).sharding);
      }
      inputs.push_back(sum->second);
    }
    return inputs;
  }

  // An operand that the graph has.
  static const Term& Known(const SharedSum& shared) {
    return *std::find_if(shared.terms.begin(), shared.terms.end(),
                         [](const Term& term) { return term.value != kNone; });
  }

  // New accumulators of the layout of the sum.
  std::vector<ValueId> Give(ValueId param, const SharedSum& shared, Rewriter* rewriter) const {
    const Value& like = graph_.value(Known(shared).value);
    std::vector<ValueId> given;
    for (const Term& term : shared.terms) {
      if (term.value != kNone) continue;
      const std::string& name = graph_.value(param).name;
      given.push_back(rewriter->builder().AddInput(
          absl::StrCat(GradName(name), ".given"), like.type, InputKind::kAccumulator,
          {{"of", name}, {kGivenToAttr, int64_t{term.layer}}}, like.sharding));
    }
    return given;
  }

  std::vector<ValueId> Operands(ValueId param, const Rewriter& rewriter) const {
    std::vector<ValueId> operands;
    size_t next = 0;
    for (const Term& term : sums_.at(param).terms) {
      operands.push_back(term.value == kNone ? given_.at(param)[next++]
                                             : rewriter.Mapped(term.value));
    }
    return operands;
  }

  const Graph& graph_;
  const LayerPlacement& placement_;
  const std::map<int, int> stage_of_;
  std::map<ValueId, SharedSum> sums_;    // by parameter
  std::map<ValueId, ValueId> param_of_;  // by what its accumulator is assigned
  // In the new graph:
  std::map<ValueId, std::vector<ValueId>> given_;  // by parameter
  std::map<ValueId, ValueId> lone_;                // parameters, by their only accumulator
  std::map<ValueId, ValueId> sum_of_lone_;
};

}  // namespace

absl::optional<Graph> WithSharedSums(const Graph& train, const LayerPlacement& placement,
                                     const LayerMap& layers) {
  return SumGiver(train, placement, layers).Run();
}

}  // namespace mgc
