#include "passes/graph/shard/idle_requests.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/text/lexer.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {
namespace {

constexpr char kHintOfRows[] = "a --strategy with rows for the model's dims, or --allow-replicated";
constexpr size_t kMostDims = 12;  // that a message lists

// The axes that cut a dim of any value that is read or made: a parameter that nothing reads saves
// no rank any work.
AxisSet CuttingAxes(const Graph& graph) {
  AxisSet axes;
  for (const Node& node : graph.nodes()) {
    for (ValueId id : node.inputs) axes |= graph.sharding(id).SplitAxes();
    for (ValueId id : node.outputs) axes |= graph.sharding(id).SplitAxes();
  }
  return axes;
}

// `a, b, ... and 3 more`
std::string ListText(const std::vector<std::string>& items) {
  const size_t shown = std::min(items.size(), kMostDims);
  std::string text =
      absl::StrJoin(items.begin(), items.begin() + static_cast<int64_t>(shown), ", ");
  if (shown < items.size()) absl::StrAppend(&text, ", ... and ", items.size() - shown, " more");
  return text;
}

// `heads, kv_heads, mlp`: the dims that rows give the axis, or a part of it, to.
std::string DimsGiven(const StrategySpec& spec, absl::string_view axis) {
  std::set<absl::string_view> known;
  std::vector<std::string> dims;
  for (const StrategyRowSpec& row : spec.rows) {
    for (const DimAxes& dim : row.dims) {
      const bool given =
          std::any_of(dim.axes.begin(), dim.axes.end(), [axis](absl::string_view name) {
            return name.substr(0, name.find('.')) == axis.substr(0, axis.find('.'));
          });
      if (given && known.insert(dim.dim).second) dims.push_back(NameText(dim.dim));
    }
  }
  return dims.empty() ? "no dim" : ListText(dims);
}

// `the model's dims are embed=64, rows=8`.
std::string DimsText(const SizeByDim& sizes) {
  if (sizes.empty()) return "the model's dims have no names";
  std::vector<std::string> dims;
  for (const auto& [name, size] : sizes) dims.push_back(absl::StrCat(NameText(name), "=", size));
  return absl::StrCat("the model's dims are ", ListText(dims));
}

class Finder {
 public:
  Finder(const Graph& sharded, const ParallelConfig& config, const StrategySpec& spec)
      : graph_(sharded), config_(config), spec_(spec), sizes_(SizesOf(sharded)) {}

  absl::StatusOr<Diagnostics> Find() {
    const Mesh& mesh = graph_.mesh();
    const AxisSet cutting = CuttingAxes(graph_);
    for (const char* name : {"tp", "cp", "dp"}) {
      for (AxisId axis : mesh.Find(name)) {
        if (!cutting.Contains(axis)) AddAxis(mesh.name(axis), mesh.size(axis));
      }
    }
    if (config_.sequence_parallel && !mesh.Find("tp").empty()) {
      MGC_ASSIGN_OR_RETURN(const bool changes, SequenceParallelismChangesAValue());
      if (!changes) {
        found_.Add({"shard_c4",
                    absl::StrCat("sequence parallelism cuts nothing: no value matches its rows; ",
                                 DimsText(sizes_)),
                    absl::StrCat("no --sequence-parallel, ", kHintOfRows)});
      }
    }
    AddZero();
    return std::move(found_);
  }

 private:
  // Of one rank alone no piece can be made, and nothing is held twice.
  void AddZero() {
    if (config_.zero < 1 || DataRanks() == 1) return;
    int level = 0;                                   // what there are pieces of
    if (StoresPieces(InputKind::kParam)) level = 1;  // as its states are
    if (level == 1 && StoresPieces(InputKind::kAccumulator)) level = 2;
    if (level == 2 && (GathersEachTime() || !config_.reshard_after_forward)) level = 3;
    if (level >= config_.zero) return;
    const char* what = level == 0 ? "states" : level == 1 ? "gradients" : "parameters";
    found_.Add({"shard_c5",
                absl::StrCat("zero ", config_.zero, " stores no ", what, " in pieces: ", spec_.name,
                             " has no store of ", what, " that fits"),
                absl::StrCat("zero ", level, ", a --strategy with a store of ", what, " over ",
                             DataAxes(), ", or --allow-replicated")});
  }

  void AddAxis(absl::string_view axis, int64_t ranks) {
    found_.Add({"shard_c3",
                absl::StrCat(axis, " ", ranks,
                             " cuts nothing, its ranks would all do the same: ", spec_.name,
                             " gives it to ", DimsGiven(spec_, axis), "; ", DimsText(sizes_)),
                kHintOfRows});
  }

  // Whether an input or a forward value that is brought home would be elsewhere without it.
  absl::StatusOr<bool> SequenceParallelismChangesAValue() const {
    ParallelConfig without = config_;
    without.sequence_parallel = false;
    MGC_ASSIGN_OR_RETURN(const MeshStrategy a, BindStrategy(spec_, config_, sizes_));
    MGC_ASSIGN_OR_RETURN(const MeshStrategy b, BindStrategy(spec_, without, sizes_));
    for (size_t i = 0; i < graph_.values().size(); ++i) {
      const ValueId id = static_cast<ValueId>(i);
      const Value& value = graph_.value(id);
      const ValueNames names = NamesOf(graph_, id);
      const bool placed =
          value.producer == kNone || a.strategy.HomeOf(graph_, id, graph_.mesh()).has_value();
      if (placed && a.strategy.Seed(value.type, names) != b.strategy.Seed(value.type, names)) {
        return true;
      }
    }
    return false;
  }

  bool StoresPieces(InputKind kind) const {
    return std::any_of(graph_.inputs().begin(), graph_.inputs().end(), [&](const GraphInput& in) {
      return in.kind == kind && !graph_.sharding(in.value).storage.empty();
    });
  }

  bool GathersEachTime() const {
    return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
      return node.phase == Phase::kForward && !node.inputs.empty() &&
             !graph_.sharding(node.inputs[0]).storage.empty();
    });
  }

  AxisSet AxesOfData() const {
    return graph_.mesh().Find("dp").AsSet() | graph_.mesh().Find("cp").AsSet();
  }
  int64_t DataRanks() const { return graph_.mesh().Size(AxesOfData()); }
  std::string DataAxes() const { return graph_.mesh().GroupName(AxesOfData()); }

  const Graph& graph_;
  const ParallelConfig& config_;
  const StrategySpec& spec_;
  const SizeByDim sizes_;
  Diagnostics found_;
};

}  // namespace

absl::StatusOr<Diagnostics> IdleRequests(const Graph& sharded, const ParallelConfig& config,
                                         const StrategySpec& spec) {
  return Finder(sharded, config, spec).Find();
}

}  // namespace mgc
