#include "tools/views/drawings/segment_nodes.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "graph/base/units.h"
#include "graph/plan/instr_collective.h"
#include "tools/views/instructions.h"

namespace mgc {
namespace {

// How often each op occurs: `matmul x4, add`.
using OpCounts = std::map<std::string, int>;

std::string OpsText(const OpCounts& counts) {
  int total = 0;
  std::string ops;
  for (const auto& [name, count] : counts) {
    total += count;
    absl::StrAppend(&ops, "\n", name, count > 1 ? absl::StrCat(" x", count) : "");
  }
  if (total == 1) return ops.substr(1);
  return counts.size() <= 6 ? absl::StrCat(total, " ops", ops) : absl::StrCat(total, " ops");
}

std::string NameOf(const Instr& instr) {
  if (instr.kind == InstrKind::kLoad) return "load";
  return instr.op != nullptr ? instr.op->name : "?";
}

SegmentNode CollectiveNode(const Plan& plan, const Segment& segment, const Instr& instr) {
  SegmentNode node;
  const InstrCollective collective = CollectiveOf(plan.mesh, plan.stages, segment, instr);
  node.collective = collective.kind();
  node.label = absl::StrCat(collective.label.empty() ? "" : collective.label + ": ",
                            NameOf(collective.kind()), "\n", plan.mesh.GroupName(collective.axes()),
                            ", ", BytesText(collective.payload_bytes));
  node.tooltip = InstrText(plan, segment, instr);
  return node;
}

SegmentNode ComputeNode(const Plan& plan, const Segment& segment, const Instr& instr) {
  SegmentNode node;
  node.label = NameOf(instr);
  if (!instr.outputs.empty()) {
    absl::StrAppend(&node.label, "\n", segment.slots[static_cast<size_t>(instr.outputs[0])].name);
  }
  node.tooltip = InstrText(plan, segment, instr);
  const std::string place = plan.model.LocText(instr.loc);
  if (!place.empty()) absl::StrAppend(&node.tooltip, "\nat ", place);
  return node;
}

// Follows data through memory: whoever last wrote an address is where its reader gets it from.
class Flow {
 public:
  explicit Flow(const Segment& segment) : segment_(segment) {}

  void Add(const Instr& instr, int node) {
    for (int slot : instr.inputs) {
      const auto writer = writers_.find(AddressOf(slot));
      if (writer != writers_.end() && writer->second != node) edges_.insert({writer->second, node});
    }
    for (int slot : instr.outputs) writers_[AddressOf(slot)] = node;
  }

  std::vector<std::pair<int, int>> Edges() const { return {edges_.begin(), edges_.end()}; }

 private:
  std::pair<int, int64_t> AddressOf(int index) const {
    const Slot& slot = segment_.slots[static_cast<size_t>(index)];
    return {slot.formal, slot.offset};
  }

  const Segment& segment_;
  std::map<std::pair<int, int64_t>, int> writers_;
  std::set<std::pair<int, int>> edges_;
};

SegmentNode BoxNode(const Segment& segment) {
  OpCounts counts;
  int collectives = 0;
  for (const Instr& instr : segment.instrs) {
    if (instr.kind == InstrKind::kStart) ++collectives;
    if (instr.kind == InstrKind::kCompute) ++counts[NameOf(instr)];
  }
  SegmentNode node;
  node.label = segment.name;
  node.tooltip = absl::StrCat(OpsText(counts), "\n", collectives, " collectives");
  return node;
}

}  // namespace

SegmentNodes NodesOf(const Plan& plan, const Segment& segment, Detail detail) {
  SegmentNodes result;
  if (detail == Detail::kBox) {
    result.nodes.push_back(BoxNode(segment));
    return result;
  }
  Flow flow(segment);
  OpCounts counts;  // of the node that stands for several ops
  bool folding = false;
  const auto close = [&] {
    if (folding) result.nodes.back().label = OpsText(counts);
    counts.clear();
    folding = false;
  };
  for (const Instr& instr : segment.instrs) {
    if (instr.kind == InstrKind::kWait) continue;
    if (instr.kind == InstrKind::kStart) {
      close();
      result.nodes.push_back(CollectiveNode(plan, segment, instr));
    } else if (detail == Detail::kFull || !folding) {
      result.nodes.push_back(ComputeNode(plan, segment, instr));
      folding = detail == Detail::kCollectives;
    }
    if (folding) ++counts[NameOf(instr)];
    flow.Add(instr, static_cast<int>(result.nodes.size()) - 1);
  }
  close();
  result.flow = flow.Edges();
  return result;
}

}  // namespace mgc
