#include "passes/cut_layers.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "passes/graph/rewrite.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

// A place behind a node.
struct CutPoint {
  int64_t bytes = 0;    // of all that crosses, of one micro-batch on one rank
  bool narrow = false;  // neither neighbouring place has fewer
};

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
  Chooser(const std::vector<CutPoint>& points, std::vector<int64_t> ends, const Machine& machine)
      : points_(points), ends_(std::move(ends)), tier_(machine.tiers.back()) {
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
  const std::vector<int64_t> ends_;
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

}  // namespace

absl::StatusOr<Graph> CutIntoLayers(const Graph& logical, int64_t layers, const Machine& machine) {
  const std::vector<CutPoint> points = AllPlaces(logical);
  const int64_t cuts = layers - 1;
  if (static_cast<int64_t>(points.size()) < cuts) {
    const Diagnostic few = {
        "cut_c1",
        absl::StrCat("the graph names no layers, and its ", logical.nodes().size(),
                     " nodes are fewer than ", layers, " stages"),
        absl::StrCat("pp * vp at most ", logical.nodes().size())};
    return absl::InvalidArgumentError(ToString(few));
  }
  std::vector<size_t> chosen;
  if (cuts > 0) {
    chosen = Chooser(points, EndsOf(logical, machine), machine).Run(static_cast<size_t>(cuts));
  }
  Rewriter rewriter(logical, Level::kLogical);
  rewriter.builder().set_num_layers(static_cast<int>(layers));
  size_t layer = 0;
  for (size_t n = 0; n < logical.nodes().size(); ++n) {
    Node node = logical.nodes()[n];
    node.layer = static_cast<int>(layer);
    rewriter.Copy(node);
    if (layer < chosen.size() && chosen[layer] == n) ++layer;
  }
  return std::move(rewriter).Finish();
}

}  // namespace mgc
