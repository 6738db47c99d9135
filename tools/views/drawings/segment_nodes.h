// What is drawn of a segment: its instructions as nodes with the flow of data between them, at one
// of three depths.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_SEGMENT_NODES_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_SEGMENT_NODES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "graph/ir/collective.h"
#include "graph/plan/plan.h"

namespace mgc {

enum class Detail {
  kFull,         // every instruction
  kCollectives,  // collectives, and what lies between two of them as one node
  kBox,          // one node
};

struct SegmentNode {
  absl::optional<CollectiveKind> collective;  // none: computes
  std::string label;
  std::string tooltip;  // types, shardings, source
};

struct SegmentNodes {
  std::vector<SegmentNode> nodes;         // in program order
  std::vector<std::pair<int, int>> flow;  // from, to; each pair once
};

// Waits are not drawn: what they wait for is. A segment without instructions has no nodes but at
// kBox.
SegmentNodes NodesOf(const Plan& plan, const Segment& segment, Detail detail);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_SEGMENT_NODES_H_
