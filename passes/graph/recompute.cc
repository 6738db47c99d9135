#include "passes/graph/recompute.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

class Recomputer {
 public:
  Recomputer(const Graph& local, RecomputeKind kind)
      : source_(local), kind_(kind), rewriter_(local, Level::kLocal) {}

  Graph Run() {
    for (const Node& node : source_.nodes()) {
      if (node.phase != Phase::kBackward) {
        rewriter_.Copy(node);
        continue;
      }
      std::vector<ValueId> inputs = node.inputs;
      for (ValueId& id : inputs) id = Again(id, node);
      rewriter_.CopyReading(node, std::move(inputs));
    }
    return std::move(rewriter_).Finish();
  }

 private:
  bool IsRecomputed(const Node& node) const {
    if (node.phase != Phase::kForward) return false;
    const bool in_layer = node.layer >= 0 && node.layer < source_.num_layers();
    if (kind_ == RecomputeKind::kFull) return in_layer && !node.op->Has(OpRole::kCollect);
    return node.op->Has(OpRole::kRecompute);
  }

  // The new value a backward node reads for an old one: a fresh copy of it where it is recomputed
  // in the reader's layer.
  ValueId Again(ValueId old, const Node& reader) {
    const NodeId producer = source_.value(old).producer;
    const Node* node = producer == kNone ? nullptr : &source_.node(producer);
    if (node == nullptr || node->layer != reader.layer || !IsRecomputed(*node)) {
      return rewriter_.Mapped(old);
    }
    if (auto it = copies_.find(old); it != copies_.end()) return it->second;
    Node copy = *node;
    copy.phase = Phase::kBackward;
    copy.origin = absl::StrCat("recomputed: ", node->origin);
    for (ValueId& id : copy.inputs) id = Again(id, reader);
    std::vector<Value> results;
    for (ValueId id : node->outputs) {
      results.push_back(source_.value(id));
      results.back().name += ".again";
    }
    const NodeId made = rewriter_.builder().AppendRaw(std::move(copy), std::move(results));
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      copies_[node->outputs[i]] = rewriter_.builder().graph().node(made).outputs[i];
    }
    return copies_.at(old);
  }

  const Graph& source_;
  const RecomputeKind kind_;
  Rewriter rewriter_;
  std::map<ValueId, ValueId> copies_;  // old value -> its copy in backward
};

}  // namespace

Graph Recompute(const Graph& local, RecomputeKind kind) {
  if (kind == RecomputeKind::kNone) return local;
  return DropDeadNodes(Recomputer(local, kind).Run());
}

}  // namespace mgc
