#include "tools/views/explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/types/layer_names.h"
#include "passes/config/strategy_spec.h"
#include "passes/graph/shard/partition.h"
#include "tools/views/sharded_again.h"

namespace mgc {
namespace {

constexpr int kMostLinks = 8;  // of a chain of decisions

// Where an axis is in a layout: the dim it cuts, or -1 to -3.
int PlaceOf(const Sharding& sharding, AxisId axis) {
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    if (sharding.dims[d].Contains(axis)) return static_cast<int>(d);
  }
  if (sharding.Owed().Contains(axis)) return -1;
  return sharding.storage.AsSet().Contains(axis) ? -2 : -3;
}

// Values as the one that is explained sees them: `*` is its own layer.
class Names {
 public:
  explicit Names(const Graph& training) : training_(training) {
    const std::vector<std::vector<NodeId>> users = training_.Users();
    layers_.resize(training_.values().size(), kNoLayer);
    for (size_t v = 0; v < layers_.size(); ++v) {
      const NodeId producer = training_.values()[v].producer;
      const NodeId of = producer != kNone ? producer : users[v].empty() ? kNone : users[v][0];
      if (of != kNone) layers_[v] = training_.node(of).layer;
    }
  }

  void SeeFrom(ValueId id) { layer_ = layers_[static_cast<size_t>(id)]; }

  std::string Seen(ValueId id) const {
    return absl::StrCat("%", FoldName(training_.value(id).name, layer_, training_.num_layers()));
  }

  std::string OpOf(ValueId id) const {
    const NodeId producer = training_.value(id).producer;
    return producer == kNone ? "" : std::string(training_.node(producer).op->name);
  }

  std::string WhatIs(ValueId id) const {
    const NodeId producer = training_.value(id).producer;
    if (producer == kNone) return std::string(NameOf(training_.FindInput(id)->kind));
    const Node& node = training_.node(producer);
    const std::string operands = absl::StrJoin(
        node.inputs, ", ",
        [this](std::string* out, ValueId operand) { absl::StrAppend(out, Seen(operand)); });
    return absl::StrCat(NameOf(node.phase), " ", node.op->name, "(", operands, ")");
  }

  std::string DimName(ValueId id, int dim) const {
    const std::string& name = training_.type(id).dims[static_cast<size_t>(dim)].name;
    return name.empty() ? absl::StrCat("dim ", dim) : name;
  }

  std::string WhyRefused(const RefusedClaim& claim, const std::string& op,
                         const std::string& axis) const {
    const std::string holder = claim.holder < 0 ? "another operand" : Seen(claim.holder);
    switch (claim.why) {
      case ClaimRefusal::kWhole:
        return absl::StrCat(op, " needs ", DimName(claim.who, claim.dim), " whole");
      case ClaimRefusal::kClosed:
        return absl::StrCat("the weight of ", op, "'s gradient holds it whole");
      case ClaimRefusal::kCarried:
        return absl::StrCat(op, " carries a sum over ", axis);
      case ClaimRefusal::kServes:
        return absl::StrCat(axis, " serves another dim in ", op, ", claimed by ", holder);
      case ClaimRefusal::kOtherwise:
        return absl::StrCat(holder, " has it cut otherwise in ", op);
      case ClaimRefusal::kTooSmall:
        return absl::StrCat(op, " sees one element of it");
      case ClaimRefusal::kUnequal:
        return absl::StrCat(axis, " would cut no runs of what ", op, " merges");
    }
    return "";
  }

 private:
  const Graph& training_;
  std::vector<int> layers_;  // by value: its own
  int layer_ = kNoLayer;
};

// Why a value lies where it does.
class Reasons {
 public:
  // Both outlive this.
  Reasons(const ShardedAgain& again, const Names& names)
      : again_(again), training_(again.training), mesh_(again.sharded.graph.mesh()), names_(names) {
    for (const ShardDecision& decision : again.record.decisions) {
      std::vector<const ShardDecision*>& known = decisions_[{decision.value, decision.axis}];
      if (IsInput(decision.value)) known.clear();
      known.push_back(&decision);
    }
  }

  void AddReasons(ValueId id, AxisId axis, std::vector<std::string>* reasons) const {
    const size_t before = reasons->size();
    for (const ShardDecision* decision : DecisionsOf(id, axis)) {
      const bool moved = decision->dim >= 0 && PlaceOf(Home(id), axis) != decision->dim;
      if (IsOutranked(*decision) || (moved && IsInput(id))) continue;
      std::string line = absl::StrCat(mesh_.name(axis), " ");
      if (decision->rule == ShardRule::kPaid) {
        absl::StrAppend(&line, "owes nothing any more: that is paid behind ", names_.OpOf(id));
      } else if (decision->dim >= 0) {
        absl::StrAppend(&line, "cuts ", names_.DimName(id, decision->dim), ": ", Chain(*decision));
      } else if (Home(id).storage.Contains(axis)) {
        absl::StrAppend(&line, "stores it in pieces: ", Chain(*decision));
      } else {
        absl::StrAppend(&line, "leaves a sum: ", Chain(*decision));
      }
      if (std::find(reasons->begin(), reasons->end(), line) != reasons->end()) continue;
      reasons->push_back(std::move(line));
    }
    if (reasons->size() > before) return;
    reasons->push_back(absl::StrCat(mesh_.name(axis), " leaves it whole: ", WhyWhole(id, axis)));
  }

 private:
  const Sharding& Home(ValueId id) const {
    return again_.sharded.graph.sharding(again_.sharded.homes[static_cast<size_t>(id)]);
  }

  bool IsInput(ValueId id) const { return training_.value(id).producer == kNone; }

  const std::vector<const ShardDecision*>& DecisionsOf(ValueId id, AxisId axis) const {
    static const auto* const kNothing = new std::vector<const ShardDecision*>();
    const auto found = decisions_.find({id, axis});
    return found == decisions_.end() ? *kNothing : found->second;
  }

  // What a table's row says outranks what came to the same.
  bool IsOutranked(const ShardDecision& one) const {
    const auto& all = DecisionsOf(one.value, one.axis);
    return std::any_of(all.begin(), all.end(), [&one](const ShardDecision* other) {
      return !one.brought && other->brought && other->dim == one.dim && one.dim >= 0;
    });
  }

  std::string WhyWhole(ValueId id, AxisId axis) const {
    const NodeId producer = training_.value(id).producer;
    for (const ShardRefusal& refusal : again_.record.refusals) {
      if (producer == kNone || refusal.node != producer || refusal.claim.axis != axis) continue;
      return names_.WhyRefused(refusal.claim, names_.OpOf(id), mesh_.name(axis));
    }
    return "no row, store or operand gives it a dim";
  }

  // A decision, and those that it goes back to.
  std::string Chain(const ShardDecision& first) const {
    std::string text;
    const ShardDecision* now = &first;
    for (int links = 0; links < kMostLinks; ++links) {
      absl::StrAppend(&text, WordsOf(*now));
      if (now->by == kNone || now->by == now->value) return text;
      const ShardDecision* next = nullptr;
      for (const ShardDecision* of_by : DecisionsOf(now->by, now->axis)) {
        if (of_by->rule != ShardRule::kPaid && !IsOutranked(*of_by)) next = of_by;
      }
      if (next == nullptr) return text;
      absl::StrAppend(&text, "; ", names_.Seen(now->by), ": ");
      now = next;
    }
    return absl::StrCat(text, "...");
  }

  std::string WordsOf(const ShardDecision& decision) const {
    const std::string by = decision.by == kNone ? "" : names_.Seen(decision.by);
    const std::string op = names_.OpOf(decision.value);
    switch (decision.rule) {
      case ShardRule::kRow:
      case ShardRule::kStore:
      case ShardRule::kPin:
        return decision.said;
      case ShardRule::kLike:
        return absl::StrCat("as ", by);
      case ShardRule::kClaim:
        return absl::StrCat(by, " claims it for ", op);
      case ShardRule::kContracts:
        return absl::StrCat(op, " sums over what cuts ", by);
      case ShardRule::kCarries:
        return absl::StrCat(by, " owes it, and ", op, " is linear in that");
      case ShardRule::kAdds:
        return absl::StrCat("as the term ", by);
      case ShardRule::kCollects:
        return absl::StrCat("as ", by, ", which it collects");
      case ShardRule::kLifts:
        return "each rank has a term";
      case ShardRule::kWorksOn:
        return absl::StrCat(op, " works on the pieces of ", by);
      case ShardRule::kPaid:
        return "paid";
    }
    return "";
  }

  const ShardedAgain& again_;
  const Graph& training_;
  const Mesh& mesh_;
  const Names& names_;
  std::map<std::pair<ValueId, AxisId>, std::vector<const ShardDecision*>> decisions_;
};

// What is communicated because a value lies where it does.
class Changes {
 public:
  // Both outlive this.
  Changes(const ShardedAgain& again, const Names& names)
      : again_(again),
        sharded_(again.sharded.graph),
        mesh_(sharded_.mesh()),
        names_(names),
        users_(sharded_.Users()) {}

  void AddFollows(ValueId id, std::vector<std::string>* follows) const {
    const ValueId home = again_.sharded.homes[static_cast<size_t>(id)];
    if (const NodeId from = sharded_.value(home).producer; from != kNone) {
      const Node& node = sharded_.node(from);
      if (node.op->Has(OpRole::kReshard) && !StepsText(node).empty()) {
        follows->push_back(absl::StrCat(NameOf(node.phase), ": ", StepsText(node), " to ",
                                        ToString(sharded_.sharding(home), mesh_)));
      }
    }
    for (NodeId user : users_[static_cast<size_t>(home)]) {
      const Node& node = sharded_.node(user);
      if (!node.op->Has(OpRole::kReshard) || StepsText(node).empty()) continue;
      std::string line = absl::StrCat(NameOf(node.phase), ": ", StepsText(node), " to ",
                                      ToString(sharded_.sharding(node.outputs[0]), mesh_),
                                      ReadersText(node.outputs[0]), RefusalsText(id, node));
      if (std::find(follows->begin(), follows->end(), line) == follows->end()) {
        follows->push_back(std::move(line));
      }
    }
  }

 private:
  // `reduce-scatter over tp, g`: the steps from one layout to another, if it takes any.
  std::string StepsText(const Node& reshard) const {
    const Value& result = sharded_.value(reshard.outputs[0]);
    Sharding now = sharded_.sharding(reshard.inputs[0]);
    std::vector<std::string> steps;
    for (const ShardingStep& step : StepsBetween(now, *result.sharding, result.type, mesh_)) {
      AxisSet moved;
      for (AxisId axis : mesh_.AllAxes()) {
        if (PlaceOf(now, axis) != PlaceOf(step.result, axis)) moved.Add(axis);
      }
      steps.push_back(absl::StrCat(absl::StrReplaceAll(step.op, {{"_", "-"}}), " over ",
                                   mesh_.GroupName(moved)));
      now = step.result;
    }
    const std::string& label = reshard.attrs.Text(kLabelAttr);
    if (steps.empty()) return "";
    return absl::StrCat(absl::StrJoin(steps, ", "), label.empty() ? "" : ", ", label);
  }

  std::string ReadersText(ValueId converted) const {
    std::vector<std::string> ops;
    for (NodeId user : users_[static_cast<size_t>(converted)]) {
      const std::string op(sharded_.node(user).op->name);
      if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
    }
    return ops.empty() ? "" : absl::StrCat(" for ", absl::StrJoin(ops, ", "));
  }

  // Why the readers in a layer and phase could not use the operand as it is.
  std::string RefusalsText(ValueId operand, const Node& place) const {
    std::string text;
    std::vector<std::string> known;
    for (const ShardRefusal& refusal : again_.record.refusals) {
      const Node& reader = again_.training.node(refusal.node);
      if (refusal.operand != operand || reader.phase != place.phase) continue;
      if (reader.layer != place.layer) continue;
      std::string why = names_.WhyRefused(refusal.claim, std::string(reader.op->name),
                                          mesh_.name(refusal.claim.axis));
      if (std::find(known.begin(), known.end(), why) != known.end()) continue;
      known.push_back(why);
      absl::StrAppend(&text, known.size() == 1 ? ": " : "; ", why);
    }
    return text;
  }

  const ShardedAgain& again_;
  const Graph& sharded_;
  const Mesh& mesh_;
  const Names& names_;
  std::vector<std::vector<NodeId>> users_;
};

// The value itself, or what belongs to a parameter of that name.
bool IsMeant(const Graph& training, ValueId id, absl::string_view pattern) {
  const Value& value = training.value(id);
  if (MatchesGlob(pattern, value.name)) return true;
  if (const GraphInput* input = training.FindInput(id); input != nullptr) {
    const std::string& of = input->attrs.Text("of");
    return !of.empty() && MatchesGlob(pattern, of);
  }
  const Node& node = training.node(value.producer);
  return node.phase == Phase::kUpdate && node.op->Has(OpRole::kReshard) && value.primal != kNone &&
         MatchesGlob(pattern, training.value(value.primal).name);
}

absl::Status NoneIsMeant(const Graph& training, absl::string_view pattern) {
  std::vector<absl::string_view> names;
  for (const Value& value : training.values()) names.push_back(value.name);
  return absl::NotFoundError(
      absl::StrCat("no value is called ", EscapeBytes(pattern), DidYouMean(pattern, names)));
}

bool Alike(const Explanation& a, const Explanation& b) {
  return a.name == b.name && a.what == b.what && a.type == b.type && a.layout == b.layout &&
         a.reasons == b.reasons && a.follows == b.follows;
}

}  // namespace

absl::StatusOr<std::vector<Explanation>> ExplainValues(const Plan& plan,
                                                       absl::string_view pattern) {
  MGC_ASSIGN_OR_RETURN(const ShardedAgain again, ShardAgain(plan));
  Names names(again.training);
  const Reasons reasons(again, names);
  const Changes changes(again, names);
  const Mesh& mesh = again.sharded.graph.mesh();
  std::vector<Explanation> explanations;
  for (size_t v = 0; v < again.training.values().size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    if (again.sharded.homes[v] == kNone || !IsMeant(again.training, id, pattern)) continue;
    names.SeeFrom(id);
    const Sharding& home = again.sharded.graph.sharding(again.sharded.homes[v]);
    const std::string type = again.training.type(id).ToString();
    Explanation one{names.Seen(id), names.WhatIs(id), type, ToString(home, mesh), 1, {}, {}};
    for (AxisId axis : mesh.AllAxes() - mesh.Find("pp").AsSet()) {
      reasons.AddReasons(id, axis, &one.reasons);
    }
    changes.AddFollows(id, &one.follows);
    const auto same = std::find_if(explanations.begin(), explanations.end(),
                                   [&one](const Explanation& other) { return Alike(one, other); });
    if (same == explanations.end()) {
      explanations.push_back(std::move(one));
    } else {
      ++same->count;
    }
  }
  if (explanations.empty()) return NoneIsMeant(again.training, pattern);
  return explanations;
}

std::string ExplainText(const std::vector<Explanation>& explanations) {
  std::string text;
  for (const Explanation& e : explanations) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", e.name, ": ", e.type, " ", e.layout, ", ",
                    e.count > 1 ? absl::StrCat(e.count, " times ") : "", e.what, "\n");
    for (const std::string& reason : e.reasons) absl::StrAppend(&text, "  ", reason, "\n");
    for (const std::string& follows : e.follows) absl::StrAppend(&text, "  -> ", follows, "\n");
  }
  return text;
}

std::string ExplainJson(const std::vector<Explanation>& explanations) {
  JsonWriter json;
  json.BeginObject().Key("values").BeginArray();
  for (const Explanation& e : explanations) {
    json.NewLine().BeginObject().String("name", e.name).String("what", e.what);
    json.String("type", e.type).String("layout", e.layout).Integer("count", e.count);
    for (const auto& [key, lines] :
         {std::make_pair("reasons", &e.reasons), std::make_pair("follows", &e.follows)}) {
      json.Key(key).BeginArray();
      for (const std::string& line : *lines) json.String(line);
      json.EndArray();
    }
    json.EndObject();
  }
  json.NewLine().EndArray().EndObject();
  return std::move(json).Finish();
}

}  // namespace mgc
