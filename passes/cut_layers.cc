#include "passes/cut_layers.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/plan/plan.h"
#include "passes/graph/rewrite.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

int64_t BytesOfType(const TensorType& type) { return type.NumElements() * SizeOf(type.dtype); }

// A node as an instruction on one rank, for its costs.
int64_t NodeNs(const Graph& graph, const Node& node, const CostModel& costs) {
  Segment segment;
  segment.formals = {{}};
  Instr instr;
  instr.op = node.op;
  instr.attrs = node.attrs;
  const auto slot = [&](ValueId id) {
    const TensorType& type = graph.type(id);
    segment.slots.push_back({"", type, Sharding::Whole(type.ndim()), 0, 0, BytesOfType(type)});
    return static_cast<int>(segment.slots.size()) - 1;
  };
  for (ValueId id : node.inputs) instr.inputs.push_back(slot(id));
  for (ValueId id : node.outputs) instr.outputs.push_back(slot(id));
  return ComputeNs(costs, segment, instr);
}

// Chooses places so that the slowest layer is fastest.
class Chooser {
 public:
  // `ends`: when the node before each place has ended, then the end of all.
  Chooser(const std::vector<CutPoint>& points, const std::vector<int64_t>& ends,
          const Machine& machine)
      : points_(points), ends_(ends), tier_(machine.tiers.back()) {
    for (size_t p = 0; p < points.size(); ++p) {
      if (points[p].narrow) candidates_.push_back(p);
    }
  }

  // `count` places, ascending; there are as many.
  std::vector<size_t> Run(size_t count) {
    if (candidates_.size() < count) {
      candidates_.resize(points_.size());
      for (size_t p = 0; p < points_.size(); ++p) candidates_[p] = p;
    }
    // Best way to place the last of so many cuts at a candidate.
    std::vector<std::vector<Way>> ways(count, std::vector<Way>(candidates_.size()));
    for (size_t k = 0; k < count; ++k) {
      for (size_t c = k; c < candidates_.size(); ++c) {
        ways[k][c] = k == 0 ? Way{LayerNs(kStart, c), Bytes(c), 0}
                            : Best(ways[k - 1], k - 1, c, c, Bytes(c));
      }
    }
    Way last = Best(ways[count - 1], count - 1, candidates_.size(), kEnd, 0);
    std::vector<size_t> chosen(count);
    for (size_t k = count; k-- > 0;) {
      chosen[k] = candidates_[last.from];
      last = ways[k][last.from];
    }
    return chosen;
  }

 private:
  static constexpr size_t kStart = std::numeric_limits<size_t>::max();
  static constexpr size_t kEnd = kStart - 1;

  struct Way {
    int64_t slowest_ns = kMaxNs;
    int64_t bytes = 0;
    size_t from = 0;  // candidate of the cut before
  };

  int64_t Bytes(size_t candidate) const { return points_[candidates_[candidate]].bytes; }

  // Between two cuts, with what crosses them.
  int64_t LayerNs(size_t from, size_t to) const {
    const int64_t begin = from == kStart ? 0 : ends_[candidates_[from]];
    const int64_t end = to == kEnd ? ends_.back() : ends_[candidates_[to]];
    double crossing = 0;
    if (from != kStart) crossing += static_cast<double>(Bytes(from));
    if (to != kEnd) crossing += static_cast<double>(Bytes(to));
    const double seconds = crossing / (tier_.bandwidth * tier_.efficiency);
    return end - begin + static_cast<int64_t>(std::min(seconds * 1e9, double{kMaxNs / 4}));
  }

  // To `to` from the best candidate before `end`, of which `first` is the first.
  Way Best(const std::vector<Way>& ways, size_t first, size_t end, size_t to, int64_t bytes) const {
    Way best;
    for (size_t c = first; c < end; ++c) {
      const Way way{std::max(ways[c].slowest_ns, LayerNs(c, to)), ways[c].bytes + bytes, c};
      const bool better =
          c == first || std::tie(way.slowest_ns, way.bytes) < std::tie(best.slowest_ns, best.bytes);
      if (better) best = way;
    }
    return best;
  }

  const std::vector<CutPoint>& points_;
  const std::vector<int64_t>& ends_;
  const NetworkTier& tier_;
  std::vector<size_t> candidates_;
};

// Counts what crosses behind every node.
std::vector<CutPoint> AllPlaces(const Graph& graph) {
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
    change[static_cast<size_t>(made)] += BytesOfType(graph.type(id));
    change[static_cast<size_t>(users[v].back())] -= BytesOfType(graph.type(id));
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

// When each node has ended, one after the other.
std::vector<int64_t> EndsOf(const Graph& graph, const Machine& machine) {
  const Mesh mesh = *Mesh::Create({});
  const std::vector<StagePlace> stages;  // of one device
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const Node& node : graph.nodes()) {
    end = std::min(end + NodeNs(graph, node, {mesh, machine, stages}), kMaxNs / 4);
    ends.push_back(end);
  }
  return ends;
}

// Reads the places that a user names.
class NamedCuts {
 public:
  // `points` are the graph's; `by_cost` is offered where the names will not do.
  NamedCuts(const Graph& graph, const std::vector<CutPoint>& points, std::vector<size_t> by_cost)
      : graph_(graph), points_(points), by_cost_(std::move(by_cost)) {}

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
    MGC_RETURN_IF_ERROR(violations_.ToStatus());
    return std::move(places_);
  }

 private:
  void Refuse(absl::string_view what) {
    violations_.Add({"cut_c2", absl::StrCat("--cuts ", what), ByCost()});
  }

  std::string ByCost() const {
    if (by_cost_.empty()) return "no --cuts";
    std::vector<std::string> names;
    for (const size_t p : by_cost_) names.push_back(points_[p].value);
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
    const int64_t cuts = request.layers - 1;
    const int64_t named = static_cast<int64_t>(request.behind.size());
    if (named == cuts) return;
    Refuse(absl::StrCat(
        "names ", named, named == 1 ? " place" : " places", ", and pp * vp = ", request.layers,
        request.layers == 1 ? " stage has " : " stages have ", cuts, " between them"));
  }

  const Graph& graph_;
  const std::vector<CutPoint>& points_;
  const std::vector<size_t> by_cost_;
  std::vector<size_t> places_;
  Diagnostics violations_;
};

}  // namespace

absl::StatusOr<std::vector<CutPoint>> FindCuts(const Graph& logical, const CutRequest& request,
                                               const Machine& machine) {
  std::vector<CutPoint> points = AllPlaces(logical);
  const int64_t cuts = request.layers - 1;
  if (static_cast<int64_t>(points.size()) < cuts) {
    const Diagnostic few = {
        "cut_c1",
        absl::StrCat("the graph names no layers, and its ", logical.nodes().size(),
                     " nodes are fewer than ", request.layers, " stages"),
        absl::StrCat("pp * vp at most ", logical.nodes().size())};
    return absl::InvalidArgumentError(ToString(few));
  }
  const std::vector<int64_t> ends = EndsOf(logical, machine);
  for (size_t p = 0; p < points.size() && ends.back() > 0; ++p) {
    points[p].before = static_cast<double>(ends[p]) / static_cast<double>(ends.back());
  }
  std::vector<size_t> chosen;
  if (cuts > 0) chosen = Chooser(points, ends, machine).Run(static_cast<size_t>(cuts));
  if (!request.behind.empty()) {
    MGC_ASSIGN_OR_RETURN(chosen, NamedCuts(logical, points, std::move(chosen)).Places(request));
  }
  for (const size_t p : chosen) points[p].chosen = true;
  return points;
}

absl::StatusOr<Graph> CutIntoLayers(const Graph& logical, const CutRequest& request,
                                    const Machine& machine) {
  MGC_ASSIGN_OR_RETURN(const std::vector<CutPoint> points, FindCuts(logical, request, machine));
  Rewriter rewriter(logical, Level::kLogical);
  rewriter.builder().set_num_layers(static_cast<int>(request.layers));
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
