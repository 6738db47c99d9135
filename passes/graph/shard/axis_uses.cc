#include "passes/graph/shard/axis_uses.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/ir/op.h"
#include "graph/types/layer_names.h"
#include "passes/graph/shard/value_uses.h"

namespace mgc {
namespace {

constexpr size_t kMostNames = 6;  // of what is as it was asked for
constexpr char kNoRow[] = "no row gives it a dim of theirs";

// A node of the training graph and one of its results.
struct Result {
  const Node& node;
  const FactorRule& rule;
  size_t number;
};

// The position of the dim that an axis cuts, or -1.
int DimCutBy(const Sharding& sharding, AxisId axis) {
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    if (sharding.dims[d].Contains(axis)) return static_cast<int>(d);
  }
  return -1;
}

std::string DimName(const TensorType& type, int dim) {
  const std::string& name = type.dims[static_cast<size_t>(dim)].name;
  return name.empty() ? absl::StrCat("dim ", dim) : name;
}

// What is to be said of a value and an axis.
struct Finding {
  AxisEffect effect = AxisEffect::kLeaves;
  std::string dim;
  std::string by = kNoRow;
};

// Finds for every value and axis what happened and who decided.
class Origins {
 public:
  Origins(const Graph& training, const Sharded& sharded, const Strategy& strategy,
          const ShardRecord& record)
      : training_(training),
        sharded_(sharded),
        mesh_(sharded.graph.mesh()),
        strategy_(strategy),
        by_(training.values().size()) {
    for (const ShardDecision& decision : record.decisions) {
      if (decision.rule == ShardRule::kPaid) continue;
      const bool first = decision.by == kNone || decision.by == decision.value;
      by_[static_cast<size_t>(decision.value)][decision.axis] =
          first ? decision.said : By(decision.by, decision.axis);
    }
  }

  const Mesh& mesh() const { return mesh_; }

  Finding OfInput(const GraphInput& input, AxisId axis) {
    const ValueId id = input.value;
    if (input.kind == InputKind::kState) return OfState(input, axis);
    const std::vector<SeededDim> seeds = SeedDims(id);
    const int dim = DimCutBy(Home(id), axis);
    if (dim >= 0) return Cut(id, dim, By(id, axis));
    return Unasked(id, axis, seeds);
  }

  Finding OfResult(const Result& result, AxisId axis) {
    const ValueId id = result.node.outputs[result.number];
    const Sharding& home = Home(id);
    if (const int dim = DimCutBy(home, axis); dim >= 0) {
      return Cut(id, dim, By(id, axis));
    }
    if (home.Owed().Contains(axis)) {
      return {AxisEffect::kSums, "", By(id, axis)};
    }
    const std::vector<SeededDim> seeds = SeedDims(id);
    for (size_t d = 0; d < seeds.size(); ++d) {
      if (!seeds[d].axes.Contains(axis)) continue;
      const int dim = static_cast<int>(d);
      return {AxisEffect::kKeeps, DimName(training_.type(id), dim),
              absl::StrCat(*seeds[d].said, ", but ", WhyWhole(result, dim, axis))};
    }
    return Unasked(id, axis, seeds);
  }

 private:
  const Sharding& Home(ValueId id) const {
    return sharded_.graph.sharding(sharded_.homes[static_cast<size_t>(id)]);
  }

  std::vector<SeededDim> SeedDims(ValueId id) const {
    return strategy_.SeedDims(training_.type(id), NamesOf(training_, id));
  }

  const std::string& By(ValueId id, AxisId axis) const {
    static const auto* const kUnknown = new std::string();
    const auto& known = by_[static_cast<size_t>(id)];
    const auto found = known.find(axis);
    return found == known.end() ? *kUnknown : found->second;
  }

  Finding Cut(ValueId id, int dim, std::string by) const {
    return {AxisEffect::kCuts, DimName(training_.type(id), dim), std::move(by)};
  }

  // An earlier row that speaks of the dim outranks the one that would give it the axis.
  Finding Unasked(ValueId id, AxisId axis, const std::vector<SeededDim>& seeds) const {
    const TensorType& type = training_.type(id);
    for (const StrategyRow& row : strategy_.rows) {
      for (const auto& [name, axes] : row.rules) {
        if (!axes.Contains(axis)) continue;
        for (size_t d = 0; d < seeds.size(); ++d) {
          if (type.dims[d].name != name || !seeds[d].said.has_value()) continue;
          return {AxisEffect::kLeaves, name, *seeds[d].said};
        }
      }
    }
    return {};
  }

  // As the parameter, and stored where its gradient is owed.
  Finding OfState(const GraphInput& input, AxisId axis) const {
    const ValueId param = training_.FindValue(input.attrs.Text("of"));
    if (param == kNone) return {};
    const Sharding& home = Home(input.value);
    if (const int dim = DimCutBy(home, axis); dim >= 0) {
      return Cut(input.value, dim, By(param, axis));
    }
    const StorageRow* row =
        strategy_.StorageRowOf(StoredKind::kStates, training_.value(param).name);
    if (home.storage.Contains(axis)) return {AxisEffect::kStores, "", row->said};
    if (row == nullptr || !row->axes.Contains(axis)) {
      return {AxisEffect::kLeaves, "", "no store gives it pieces of theirs"};
    }
    return {AxisEffect::kKeeps, "",
            absl::StrCat(row->said, ", but ",
                         training_.type(param).ndim() == 0
                             ? "a scalar has no pieces"
                             : "the parameter's gradient owes no sum over it")};
  }

  // Whether an axis cuts a dim of operand `i` that the result does not have.
  bool Contracts(const Result& result, size_t i, AxisId axis) const {
    const int from = DimCutBy(Home(result.node.inputs[i]), axis);
    if (from < 0) return false;
    const DimFactors& factors = result.rule.operands[i][static_cast<size_t>(from)];
    return std::any_of(factors.begin(), factors.end(), [&](int f) {
      return !result.rule.InResult(f, static_cast<int>(result.number));
    });
  }

  // Why a dim is whole that the rows would cut.
  std::string WhyWhole(const Result& result, int dim, AxisId axis) const {
    const Node& node = result.node;
    const ValueId id = node.outputs[result.number];
    if (node.op->Has(OpRole::kReshard) && node.attrs.Int("pin") != 0) {
      return absl::StrCat("a pin says ", node.attrs.Text("sharding"));
    }
    const size_t d = static_cast<size_t>(dim);
    for (int f : result.rule.results[result.number][d]) {
      if (result.rule.factors[static_cast<size_t>(f)].whole) {
        return absl::StrCat(node.op->name, " needs it whole");
      }
    }
    if (training_.value(id).primal != kNone) return "a gradient is laid out as its value";
    bool cut = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (Contracts(result, i, axis)) {
        return absl::StrCat(node.op->name, " sums over another dim that it cuts");
      }
      cut = cut || Home(node.inputs[i]).UsedAxes().Contains(axis);
    }
    if (!cut) return absl::StrCat("it cuts no operand of ", node.op->name);
    const Dim& whole = training_.type(id).dims[d];
    const int64_t pieces = mesh_.Size(Home(id).dims[d]) * mesh_.size(axis);
    if (!strategy_.Allows(whole, pieces)) {
      return absl::StrCat(whole.size, " is no multiple of ", pieces);
    }
    return absl::StrCat("it serves another dim in ", node.op->name);
  }

  const Graph& training_;
  const Sharded& sharded_;
  const Mesh& mesh_;
  const Strategy& strategy_;
  // By value and axis what the strategy or a pin says that the decisions on it go back to.
  std::vector<std::map<AxisId, std::string>> by_;
};

// Counts findings that are alike.
class Counter {
 public:
  explicit Counter(const Mesh& mesh) : mesh_(mesh) {}

  void Add(AxisId axis, ValueKind kind, const Finding& finding, const std::string& name) {
    Group& group = groups_[{axis, kind, finding.effect, finding.dim, finding.by}];
    if (group.use.count++ == 0) {
      group.use = {mesh_.name(axis), finding.effect, kind, finding.dim, finding.by, 1, {}, 0};
    }
    if (!group.known.insert(name).second) return;
    const bool all = finding.effect == AxisEffect::kKeeps;
    if (all || group.use.names.size() < kMostNames) {
      group.use.names.push_back(name);
    } else {
      ++group.use.more;
    }
  }

  std::vector<AxisUse> Take() && {
    std::vector<AxisUse> uses;
    for (auto& [key, group] : groups_) uses.push_back(std::move(group.use));
    return uses;
  }

 private:
  struct Group {
    AxisUse use;
    absl::flat_hash_set<std::string> known;
  };

  const Mesh& mesh_;
  std::map<std::tuple<AxisId, ValueKind, AxisEffect, std::string, std::string>, Group> groups_;
};

// None: of no interest here.
absl::optional<ValueKind> KindOf(const GraphInput& input) {
  switch (input.kind) {
    case InputKind::kParam:
      return ValueKind::kParameters;
    case InputKind::kState:
      return ValueKind::kStates;
    case InputKind::kData:
      return ValueKind::kActivations;
    case InputKind::kAccumulator:  // as what it collects
    case InputKind::kScalar:
      return absl::nullopt;
  }
  return absl::nullopt;
}

ValueKind KindOf(const Node& node, ValueId id, const ValueUses& uses) {
  if (node.phase == Phase::kForward) return ValueKind::kActivations;
  return uses.WeightOfGradient(id) == kNone ? ValueKind::kActivationGradients
                                            : ValueKind::kGradients;
}

}  // namespace

absl::string_view WordOf(ValueKind kind) {
  constexpr absl::string_view kWords[] = {"parameters", "gradients", "states", "activations",
                                          "activation gradients"};
  return kWords[static_cast<int>(kind)];
}

absl::string_view WordOf(AxisEffect effect) {
  constexpr absl::string_view kWords[] = {"cuts", "stores", "sums", "keeps", "leaves"};
  return kWords[static_cast<int>(effect)];
}

std::vector<AxisUse> AxisUsesOf(const Graph& training, const Sharded& sharded,
                                const Strategy& strategy, const ShardRecord& record) {
  const Mesh& mesh = sharded.graph.mesh();
  const AxisSet axes = mesh.AllAxes() - mesh.Find("pp").AsSet();
  const ValueUses uses(training);
  const std::vector<std::vector<NodeId>> users = training.Users();
  Origins origins(training, sharded, strategy, record);
  Counter counter(mesh);
  for (const GraphInput& input : training.inputs()) {
    const absl::optional<ValueKind> kind = KindOf(input);
    const std::vector<NodeId>& readers = users[static_cast<size_t>(input.value)];
    if (!kind.has_value() || readers.empty()) continue;
    const std::string name = FoldName(training.value(input.value).name,
                                      training.node(readers[0]).layer, training.num_layers());
    for (AxisId axis : axes) counter.Add(axis, *kind, origins.OfInput(input, axis), name);
  }
  for (const Node& node : training.nodes()) {
    // Working copies are laid out as their parameters.
    if (!IsOfMicroBatch(node.phase)) continue;
    const FactorRule rule = RuleOf(training, node);
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      const ValueId id = node.outputs[r];
      if (training.type(id).ndim() == 0) continue;
      const std::string name = FoldName(training.value(id).name, node.layer, training.num_layers());
      for (AxisId axis : axes) {
        counter.Add(axis, KindOf(node, id, uses), origins.OfResult({node, rule, r}, axis), name);
      }
    }
  }
  return std::move(counter).Take();
}

}  // namespace mgc
