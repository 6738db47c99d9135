#include "passes/cut_layers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/ir/op.h"
#include "graph/types/factor_rule.h"
#include "passes/choose_cuts.h"
#include "passes/config/rank_groups.h"
#include "passes/graph/rewrite.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

// What one rank has of each value, and how long each node takes it, if nothing but samples is cut.
class OneRank {
 public:
  OneRank(const Graph& graph, const Mesh& mesh, const Machine& machine)
      : graph_(graph), mesh_(mesh), costs_{mesh, machine, no_stages_}, dp_(mesh.Find("dp")) {
    for (const Value& value : graph.values()) {
      shardings_.push_back(Sharding::Whole(value.type.ndim()));
    }
    for (const GraphInput& input : graph.inputs()) {
      const std::vector<Dim>& dims = graph.type(input.value).dims;
      if (input.kind != InputKind::kData || dims.empty() || dims[0].name != kSampleDim) continue;
      if (dims[0].size % mesh.Size(dp_) == 0) ShardingOfValue(input.value).dims[0] = dp_;
    }
    int64_t end = 0;
    for (const Node& node : graph.nodes()) {
      end = std::min(end + Take(node), kMaxNs / 4);
      ends_.push_back(end);
    }
  }

  int64_t Bytes(ValueId id) const { return BytesOfTile(id, shardings_[static_cast<size_t>(id)]); }
  // When each node has ended, one after the other.
  const std::vector<int64_t>& ends() const { return ends_; }

 private:
  Sharding& ShardingOfValue(ValueId id) { return shardings_[static_cast<size_t>(id)]; }

  int64_t BytesOfTile(ValueId id, const Sharding& sharding) const {
    const TensorType& type = graph_.type(id);
    return std::min(LocalElements(type, sharding, mesh_) * SizeOf(type.dtype), kMostBytes);
  }

  // The axes that cut a node's factors as they cut its operands: each one factor, or none where
  // what is made could not be said to be cut.
  FactorAxes AxesOf(const FactorRule& rule, const Node& node) {
    std::vector<const Sharding*> operands;
    for (ValueId id : node.inputs) operands.push_back(&ShardingOfValue(id));
    FactorAxes axes = FactorAxesOf(rule, operands, {}, mesh_);
    AxisSet used;
    for (size_t f = 0; f < axes.size(); ++f) {
      if (rule.factors[f].whole || used.Intersects(axes[f].AsSet())) axes[f] = {};
      used |= axes[f].AsSet();
    }
    return Representable(rule, axes, mesh_) ? axes : FactorAxes(axes.size());
  }

  // Cuts what the node makes; its time, as an instruction.
  int64_t Take(const Node& node) {
    const FactorRule rule = RuleOf(graph_, node);
    const FactorAxes axes = AxesOf(rule, node);
    Segment segment;
    segment.formals = {{}};
    Instr instr;
    instr.op = node.op;
    instr.attrs = node.attrs;
    const auto slot = [&](ValueId id, Sharding sharding) {
      const int64_t bytes = BytesOfTile(id, sharding);
      segment.slots.push_back({"", graph_.type(id), std::move(sharding), 0, 0, bytes});
      return static_cast<int>(segment.slots.size()) - 1;
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      instr.inputs.push_back(slot(node.inputs[i], ShardingOf(rule.operands[i], axes)));
    }
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      Sharding& made = ShardingOfValue(node.outputs[r]);
      made = ShardingOf(rule.results[r], axes);
      instr.outputs.push_back(slot(node.outputs[r], made));
    }
    return ComputeNs(costs_, segment, instr);
  }

  // What no device holds is not told apart: sums stay in range.
  static constexpr int64_t kMostBytes = int64_t{1} << 40;

  const Graph& graph_;
  const Mesh& mesh_;
  const std::vector<StagePlace> no_stages_;  // ops alone are timed
  const CostModel costs_;
  const AxisList dp_;
  std::vector<Sharding> shardings_;  // by value
  std::vector<int64_t> ends_;
};

// By cost: the narrow places if they are enough.
std::vector<size_t> Choose(const std::vector<CutPoint>& points, const std::vector<int64_t>& ends,
                           const CutRequest& request, const Machine& machine) {
  const CostModel costs{request.mesh, machine, request.stages};
  std::vector<const NetworkTier*> tiers;
  for (size_t s = 1; s < request.stages.size(); ++s) {
    const int from = request.stages[s - 1].rank_class;
    const int to = request.stages[s].rank_class;
    tiers.push_back(from == to ? nullptr : &TransferTier(costs, from, to));
  }
  std::vector<size_t> candidates;
  for (const bool narrow : {true, false}) {
    if (candidates.size() >= tiers.size()) break;
    candidates.clear();
    for (size_t p = 0; p < points.size(); ++p) {
      if (points[p].narrow || !narrow) candidates.push_back(p);
    }
  }
  std::vector<CutPlace> places;
  for (const size_t p : candidates) places.push_back({ends[p], points[p].bytes});
  std::vector<size_t> chosen = ChooseCuts(places, ends.back(), tiers);
  for (size_t& place : chosen) place = candidates[place];
  return chosen;
}

// Counts what crosses behind every node.
std::vector<CutPoint> AllPlaces(const Graph& graph, const OneRank& rank) {
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<CutPoint> points(nodes.empty() ? 0 : nodes.size() - 1);
  const std::vector<std::vector<NodeId>> users = graph.Users();
  std::vector<int64_t> change(nodes.size() + 1, 0);
  for (size_t v = 0; v < users.size(); ++v) {
    const ValueId id = static_cast<ValueId>(v);
    if (users[v].empty()) continue;
    NodeId made = graph.value(id).producer;
    if (made == kNone) {
      if (graph.FindInput(id)->kind != InputKind::kParam) continue;  // a stage loads its data
      made = users[v].front();
    }
    change[static_cast<size_t>(made)] += rank.Bytes(id);
    change[static_cast<size_t>(users[v].back())] -= rank.Bytes(id);
  }
  int64_t bytes = 0;
  for (size_t p = 0; p < points.size(); ++p) {
    bytes += change[p];
    points[p].bytes = bytes;
    points[p].value = graph.value(nodes[p].outputs[0]).name;
  }
  for (size_t p = 0; p < points.size(); ++p) {
    const bool below = p == 0 || points[p].bytes <= points[p - 1].bytes;
    points[p].narrow = below && (p + 1 == points.size() || points[p].bytes <= points[p + 1].bytes);
  }
  return points;
}

// Reads the places that a user names.
class NamedCuts {
 public:
  // `points` are the graph's; those of `by_cost`, asked for where the names will not do, are
  // offered then.
  NamedCuts(const Graph& graph, const std::vector<CutPoint>& points,
            absl::FunctionRef<std::vector<size_t>()> by_cost)
      : graph_(graph), points_(points), by_cost_(by_cost) {}

  absl::StatusOr<std::vector<size_t>> Places(const CutRequest& request) {
    const std::string* previous = nullptr;
    for (const std::string& name : request.behind) {
      const ValueId id = graph_.FindValue(name);
      if (const std::string why = WhyNot(id, name); !why.empty()) {
        Refuse(absl::StrCat("names %", name, ", ", why));
        continue;
      }
      const size_t place = static_cast<size_t>(graph_.value(id).producer);
      if (previous != nullptr && place <= places_.back()) {
        const bool same = place == places_.back();
        Refuse(absl::StrCat("names %", name, " behind %", *previous, ", ",
                            same ? "at the same place" : "which is made later"));
      }
      previous = &name;
      places_.push_back(place);
    }
    CheckNumber(request);
    if (refused_.empty()) return std::move(places_);
    Diagnostics violations;
    const std::string hint = ByCost();
    for (const std::string& what : refused_) {
      violations.Add({"cut_c2", absl::StrCat("--cuts ", what), hint});
    }
    return violations.ToStatus();
  }

 private:
  void Refuse(std::string what) { refused_.push_back(std::move(what)); }

  std::string ByCost() const {
    const std::vector<size_t> places = by_cost_();
    if (places.empty()) return "no --cuts";
    std::vector<std::string> names;
    for (const size_t p : places) names.push_back(points_[p].value);
    return absl::StrCat("--cuts ", absl::StrJoin(names, ","),
                        " (by cost); mgc-plan cuts lists all");
  }

  // Why a graph cannot be cut behind a value; empty: it can.
  std::string WhyNot(ValueId id, const std::string& name) const {
    if (id == kNone) {
      std::vector<absl::string_view> names;
      for (const CutPoint& point : points_) names.push_back(point.value);
      return absl::StrCat("which the graph does not have", DidYouMean(name, names));
    }
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNone) {
      const bool param = graph_.FindInput(id)->kind == InputKind::kParam;
      return absl::StrCat(param ? "a parameter" : "a data input", ", which no node makes");
    }
    const bool last = static_cast<size_t>(producer) == points_.size();
    return last ? "which the last node makes: behind it is nothing for a stage" : "";
  }

  void CheckNumber(const CutRequest& request) {
    const size_t stages = request.stages.size();
    const size_t named = request.behind.size();
    if (named == stages - 1) return;
    Refuse(absl::StrCat("names ", named, named == 1 ? " place" : " places",
                        ", and pp * vp = ", stages, stages == 1 ? " stage has " : " stages have ",
                        stages - 1, " between them"));
  }

  const Graph& graph_;
  const std::vector<CutPoint>& points_;
  const absl::FunctionRef<std::vector<size_t>()> by_cost_;
  std::vector<size_t> places_;
  std::vector<std::string> refused_;
};

}  // namespace

absl::StatusOr<CutRequest> CutRequestOf(const ParallelConfig& config,
                                        const LayerPlacement& placement) {
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, DenseMesh(config));
  return CutRequest{mesh, placement.places, config.layout.cuts};
}

absl::StatusOr<std::vector<CutPoint>> FindCuts(const Graph& logical, const CutRequest& request,
                                               const Machine& machine) {
  const size_t stages = request.stages.size();
  if (stages > 1 && logical.nodes().size() < stages) {
    const Diagnostic few = {
        "cut_c1",
        absl::StrCat("the graph names no layers, and its ", logical.nodes().size(),
                     " nodes are fewer than ", stages, " stages"),
        absl::StrCat("pp * vp at most ", logical.nodes().size())};
    return absl::InvalidArgumentError(ToString(few));
  }
  const OneRank rank(logical, request.mesh, machine);
  const std::vector<int64_t>& ends = rank.ends();
  std::vector<CutPoint> points = AllPlaces(logical, rank);
  for (size_t p = 0; p < points.size() && ends.back() > 0; ++p) {
    points[p].before = static_cast<double>(ends[p]) / static_cast<double>(ends.back());
  }
  const auto by_cost = [&] {
    return stages > 1 ? Choose(points, ends, request, machine) : std::vector<size_t>();
  };
  std::vector<size_t> chosen;
  if (request.behind.empty()) {
    chosen = by_cost();
  } else {
    MGC_ASSIGN_OR_RETURN(chosen, NamedCuts(logical, points, by_cost).Places(request));
  }
  for (const size_t p : chosen) points[p].chosen = true;
  return points;
}

absl::StatusOr<Graph> CutIntoLayers(const Graph& logical, const CutRequest& request,
                                    const Machine& machine) {
  MGC_ASSIGN_OR_RETURN(const std::vector<CutPoint> points, FindCuts(logical, request, machine));
  Rewriter rewriter(logical, Level::kLogical);
  rewriter.builder().set_num_layers(static_cast<int>(request.stages.size()));
  int layer = 0;
  for (size_t n = 0; n < logical.nodes().size(); ++n) {
    Node node = logical.nodes()[n];
    node.layer = layer;
    rewriter.Copy(node);
    if (n < points.size() && points[n].chosen) ++layer;
  }
  return std::move(rewriter).Finish();
}

}  // namespace mgc
