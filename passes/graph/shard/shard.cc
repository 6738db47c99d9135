#include "passes/graph/shard/shard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_vector.h"
#include "passes/graph/shard/check_rows.h"
#include "passes/graph/shard/claims.h"
#include "passes/graph/shard/gathers.h"
#include "passes/graph/shard/homes.h"
#include "passes/graph/shard/shard_notes.h"
#include "passes/graph/shard/sharded_graph.h"
#include "passes/graph/shard/value_uses.h"

namespace mgc {
namespace {

// The sharding a pin asks for. Axes of one rank, which no mesh holds, cut nothing.
absl::StatusOr<Sharding> PinnedSharding(const std::string& text, const TensorType& type,
                                        const Strategy& strategy, const Mesh& mesh) {
  const std::vector<std::string> usual = absl::StrSplit(kDefaultAxisOrder, '-');
  std::vector<std::string> dims;
  for (absl::string_view dim : absl::StrSplit(text, ',')) {
    std::vector<std::string> held;
    for (absl::string_view axis : absl::StrSplit(dim, '*')) {
      if (const auto part = strategy.parts.find(axis); part != strategy.parts.end()) {
        for (AxisId whole : part->second) held.push_back(mesh.name(whole));
        continue;
      }
      const absl::string_view name = axis.substr(0, axis.find('.'));
      const bool one_rank =
          mesh.Find(name).empty() && std::find(usual.begin(), usual.end(), name) != usual.end();
      if (!one_rank) held.emplace_back(axis);
    }
    dims.push_back(held.empty() ? "-" : absl::StrJoin(held, "*"));
  }
  MGC_ASSIGN_OR_RETURN(Sharding pinned, ParseSharding(absl::StrJoin(dims, ","), mesh));
  MGC_RETURN_IF_ERROR(CheckSharding(type, pinned, mesh));
  if (pinned.UsedAxes() != pinned.SplitAxes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pin says how dims are cut, `", text, "` says more [shard_c2]"));
  }
  if (strategy.Allows(type, pinned, mesh)) return pinned;
  return absl::InvalidArgumentError(
      absl::StrCat("the pin `", text, "` cuts ", EscapeBytes(type.ToString()),
                   " into unequal pieces, and the strategy says `uneven` of no such dim "
                   "[shard_c6]"));
}

// The operands of a sum, by old ids.
struct SumTerms {
  std::vector<ValueId> terms;  // added before what is owed is paid, those of the whole shape first
  std::vector<ValueId> whole;
  Sharding added;  // that the terms are added in
};

SumTerms TermsOf(const Graph& source, const Node& node, const ValueUses& uses,
                 const ShardedGraph& made) {
  const int ndim = source.type(node.outputs[0]).ndim();
  const bool stays = uses.StaysOwed(node.outputs[0]);
  SumTerms sum;
  AxisSet owed;
  for (ValueId id : node.inputs) {
    owed |= made.Home(id).sum;
    (stays || !made.Home(id).sum.empty() ? sum.terms : sum.whole).push_back(id);
  }
  std::stable_partition(sum.terms.begin(), sum.terms.end(),
                        [&](ValueId id) { return source.type(id).ndim() == ndim; });
  sum.added = Paid(made.Home(sum.terms[0]), owed);
  for (AxisList& list : sum.added.dims) {
    for (AxisId axis : owed) list.Remove(axis);
  }
  sum.added.sum = owed;
  return sum;
}

// Where in a step an entry of its vector is lifted: beside its producer, so that layers stay alike.
int LayerOfEntry(const Graph& source, ValueId entry, const ValueUses& uses) {
  if (uses.AssignedTo(entry) != kNone) return kNoLayer;
  return source.node(source.value(entry).producer).layer;
}

class Sharder {
 public:
  Sharder(const Graph& source, const Mesh& mesh, const Strategy& strategy, ShardRecord* record)
      : source_(source),
        mesh_(mesh),
        strategy_(strategy),
        uses_(source),
        made_(source, mesh),
        notes_(source, record),
        homes_(source, strategy, uses_, made_, record),
        gathers_(source, strategy, mesh) {}

  absl::StatusOr<Sharded> Run() {
    MGC_RETURN_IF_ERROR(CheckRows(source_, strategy_, mesh_).ToStatus());
    for (const GraphInput& input : source_.inputs()) {
      made_.SetHome(input.value, homes_.OfInput(input));
    }
    for (const Node& node : source_.nodes()) {
      MGC_RETURN_IF_ERROR(Annotate(Visit(node), source_.LocText(node.loc)));
    }
    std::vector<ValueId> homes(source_.values().size());
    for (size_t i = 0; i < homes.size(); ++i) homes[i] = made_.Mapped(static_cast<ValueId>(i));
    Graph graph = std::move(made_).Finish();
    MGC_RETURN_IF_ERROR(CheckTiles(graph).ToStatus());
    return Sharded{std::move(graph), std::move(gathers_).Notes(), std::move(homes)};
  }

 private:
  const Sharding& Home(ValueId old) const { return made_.Home(old); }

  // The rule "home": forward and backward read a whole copy of what is stored in pieces, which the
  // layer makes when the step begins, or each time.
  absl::Status Visit(const Node& node) {
    if (node.op->Has(OpRole::kCollect)) return VisitCollect(node);
    std::vector<std::pair<ValueId, ValueId>> stored;  // old values with what stands for them
    for (ValueId id : node.inputs) {
      if (!IsOfMicroBatch(node.phase) || Home(id).storage.empty()) continue;
      stored.emplace_back(id, made_.Mapped(id));
      made_.MapToCopy(id, homes_.IsGatheredEachTime(id) ? node.phase : Phase::kPrepare, node);
    }
    absl::Status visited = VisitReading(node);
    for (const auto& [id, pieces] : stored) made_.Map(id, pieces);
    return visited;
  }

  absl::Status VisitReading(const Node& node) {
    const OpDef& op = *node.op;
    if (op.Has(OpRole::kReshard)) return VisitSharding(node);
    if (PacksStepVector(node)) return VisitPack(node);
    for (ValueId id : node.inputs) {
      if (Home(id).storage.empty()) continue;
      const Sharding stored = Home(id);  // homes move as values are made
      return VisitStored(node, id, stored);
    }
    if (op.Has(OpRole::kSum)) {
      for (ValueId id : node.inputs) {
        if (!Home(id).sum.empty()) return VisitSum(node);
      }
    }
    return VisitGeneral(node, node.inputs);
  }

  // The rule "claims", then conversion of operands and settling of results.
  absl::Status VisitGeneral(const Node& node, const std::vector<ValueId>& operands) {
    const FactorRule rule = RuleOf(source_, node);
    Claims claims(rule, mesh_);
    const std::vector<AxisSet> carries = homes_.CarriedOf(node, operands);
    AxisSet carried;
    for (AxisSet axes : carries) carried |= axes;
    claims.Block(carried);
    homes_.ClaimInOrder(node, rule, &claims);
    Node made = node;
    for (size_t i = 0; i < operands.size(); ++i) {
      Sharding wanted = ShardingOf(rule.operands[i], claims.axes());
      wanted.sum = carries[i];
      MGC_RETURN_IF_ERROR(gathers_.Take(operands[i], Home(operands[i]), wanted, node));
      made.inputs[i] = made_.Convert(made_.Mapped(operands[i]), wanted, node);
    }
    notes_.Refused(node, claims);
    std::vector<Sharding> produced;
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      produced.push_back(ResultSharding(rule, claims.axes(), static_cast<int>(r)));
      produced.back().sum |= carried;
      notes_.Made(node, r, produced.back(), rule, claims, carries);
    }
    Emit(made, node, produced);
    return absl::OkStatus();
  }

  // The rules "add" and "lift": operands that owe the same sum are added locally and paid once;
  // different owed sets are lifted to their union; whole operands join after the payment.
  absl::Status VisitSum(const Node& node) {
    const auto [terms, whole, dims] = TermsOf(source_, node, uses_, made_);
    // Rows alone owe: there is no sum of the whole shape that they could join unpaid.
    if (source_.type(terms[0]).ndim() != source_.type(node.outputs[0]).ndim()) {
      return VisitGeneral(node, node.inputs);
    }
    notes_.Added(node.outputs[0], dims, terms, [this](ValueId id) { return Home(id); });
    Node local = node;
    local.inputs = made_.ConvertTerms(terms, dims, node);
    if (whole.empty()) {
      Emit(local, node, {dims});
      return absl::OkStatus();
    }
    const Sharding target = homes_.Target(node.outputs[0], dims, AxisSet());
    const std::string name = source_.value(node.outputs[0]).name;
    ValueId sum = local.inputs[0];
    if (local.inputs.size() > 1) sum = made_.Append(local, node.outputs[0], dims, name + ".part");
    Node last = node;
    last.inputs = {made_.Convert(sum, target, node)};
    for (ValueId id : made_.ConvertTerms(whole, target, node)) last.inputs.push_back(id);
    Emit(last, node, {target});
    return absl::OkStatus();
  }

  absl::Status VisitCollect(const Node& node) {
    notes_.All(node.inputs[0], Home(node.inputs[1]), ShardRule::kCollects, node.inputs[1]);
    const Sharding home = homes_.OfAccumulator(node.inputs[0], node.inputs[1]);
    made_.SetHome(node.inputs[0], home);
    notes_.All(node.outputs[0], home, ShardRule::kLike, node.inputs[0]);
    Node made = node;
    made.inputs = {made_.Mapped(node.inputs[0]),
                   made_.Convert(made_.Mapped(node.inputs[1]), home, node)};
    made_.Append(made, node.outputs[0], home, source_.value(node.outputs[0]).name);
    return absl::OkStatus();
  }

  // The norm's vector and the loss: every entry is lifted to one owed set, over pp too, where only
  // one stage contributes.
  absl::Status VisitPack(const Node& node) {
    Sharding owed = Sharding::Whole(0);
    owed.sum = mesh_.Find("pp").AsSet();
    for (ValueId id : node.inputs) owed.sum |= Home(id).sum;
    Node made = node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Node place = node;
      place.layer = LayerOfEntry(source_, node.inputs[i], uses_);
      made.inputs[i] = made_.Convert(made_.Mapped(node.inputs[i]), owed, place);
    }
    Sharding result = Sharding::Whole(1);
    result.sum = owed.sum;
    notes_.All(node.outputs[0], result, ShardRule::kLifts, kNone);
    Emit(made, node, {result});
    return absl::OkStatus();
  }

  // Elementwise work on flat pieces: every operand of the stored shape takes the same storage.
  absl::Status VisitStored(const Node& node, ValueId of, const Sharding& stored) {
    Node made = node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool scalar = source_.type(node.inputs[i]).ndim() == 0;
      const ValueId now = made_.Mapped(node.inputs[i]);
      made.inputs[i] = scalar ? now : made_.Convert(now, stored, node);
    }
    std::vector<Sharding> produced;
    for (ValueId id : node.outputs) {
      produced.push_back(source_.type(id).ndim() == 0 ? Sharding::Whole(0) : stored);
      if (source_.type(id).ndim() == 0) produced.back().sum = stored.UsedAxes();
      notes_.All(id, produced.back(), ShardRule::kWorksOn, of);
    }
    Emit(made, node, produced);
    return absl::OkStatus();
  }

  absl::Status VisitSharding(const Node& node) {
    const ValueId result = node.outputs[0];
    Sharding target = Paid(Home(node.inputs[0]), mesh_.AllAxes());
    if (node.attrs.Int("pin") != 0) {
      MGC_ASSIGN_OR_RETURN(target, PinnedSharding(node.attrs.Text("sharding"), source_.type(result),
                                                  strategy_, mesh_));
      notes_.Pinned(node, target);
    } else if (const ValueId param = source_.value(result).primal; param != kNone) {
      target = Home(param);
      for (ValueId state : uses_.StatesOf(param)) made_.SetHome(state, target);
      notes_.Like(uses_.StatesOf(param), target, param);
      notes_.All(result, target, ShardRule::kLike, param);
    } else if (const ValueId assigned = uses_.AssignedTo(result); assigned != kNone) {
      target = Home(assigned);
      notes_.All(result, target, ShardRule::kLike, assigned);
    } else {
      notes_.All(result, target, ShardRule::kLike, node.inputs[0]);
    }
    made_.Resolve(result, made_.Mapped(node.inputs[0]), target, node);
    return absl::OkStatus();
  }

  // Appends a node whose operands are converted and settles its results.
  void Emit(Node made, const Node& old, const std::vector<Sharding>& produced) {
    made_.Emit(std::move(made), old, produced, homes_.TargetsOf(old, produced));
  }

  const Graph& source_;
  const Mesh& mesh_;
  const Strategy& strategy_;
  ValueUses uses_;
  ShardedGraph made_;
  ShardNotes notes_;
  Homes homes_;
  Gathers gathers_;
};

}  // namespace

absl::StatusOr<Sharded> Shard(const Graph& training, const Mesh& mesh, const Strategy& strategy,
                              ShardRecord* record) {
  return Sharder(training, mesh, strategy, record).Run();
}

}  // namespace mgc
