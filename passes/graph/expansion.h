// What the fuse pass looks for: the small ops that a fused op stands for (OpDef::expand), recorded.

#ifndef MGC_PASSES_GRAPH_EXPANSION_H_
#define MGC_PASSES_GRAPH_EXPANSION_H_

#include <vector>

#include "graph/ir/op.h"
#include "graph/types/attrs.h"

namespace mgc {

// One node of an expansion. Values are numbered: the fused op's operands, then the nodes' results.
struct PatternNode {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<ValueId> inputs;
};

struct Pattern {
  const OpDef* fused = nullptr;
  // In program order; each has one result and the last one's is the fused op's.
  std::vector<PatternNode> nodes;

  int num_operands() const { return static_cast<int>(fused->operands.size()); }
  // The node that makes the value; -1: it is an operand.
  int MakerOf(ValueId value) const { return value < num_operands() ? -1 : value - num_operands(); }
};

// The expansion of a use with these attributes. For ops with one result whose small ops have one
// each, which are those that fuse replaces.
Pattern PatternOf(const OpDef& fused, const Attrs& attrs);

// Of every op that replaces its expansion, without attributes; in the order of the op table.
std::vector<Pattern> PatternsToReplace();

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_EXPANSION_H_
