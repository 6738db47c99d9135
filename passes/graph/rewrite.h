// Rebuilding a graph: passes copy the nodes they keep into a new graph and change what they are
// about. Keeps the correspondence of values between the old graph and the new one.

#ifndef MGC_PASSES_GRAPH_REWRITE_H_
#define MGC_PASSES_GRAPH_REWRITE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

class Rewriter {
 public:
  enum class Inputs : uint8_t { kCopy, kNone };
  // Starts a graph of `source`'s name, mesh and layers; with the same inputs, or without any.
  Rewriter(const Graph& source, Level level, Inputs inputs = Inputs::kCopy);

  const Graph& source() const { return source_; }
  GraphBuilder& builder() { return builder_; }
  const GraphBuilder& builder() const { return builder_; }

  // The new value that stands for an old one; kNone when it has not been copied.
  ValueId Mapped(ValueId old) const { return map_[static_cast<size_t>(old)]; }
  void Map(ValueId old, ValueId now) { map_[static_cast<size_t>(old)] = now; }

  // Lets the copy of a node's result go by another name.
  void Rename(ValueId old, std::string name) { names_.emplace(old, std::move(name)); }

  // Copies an input, with the attributes that it has here.
  void CopyInput(const GraphInput& input);
  // Copies a node, reading the mapped values; its results keep name, type and sharding.
  NodeId Copy(const Node& node);
  // The same, reading `inputs`, which are new values.
  NodeId CopyReading(const Node& node, std::vector<ValueId> inputs);

  // Copies the source's outputs through the map and ends.
  Graph Finish() &&;

 private:
  const Graph& source_;
  GraphBuilder builder_;
  std::vector<ValueId> map_;
  std::map<ValueId, std::string> names_;  // by old value
};

// Without the nodes that no output depends on.
Graph DropDeadNodes(const Graph& graph);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_REWRITE_H_
