#include "passes/graph/recompute.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/op.h"
#include "passes/graph/large_products.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

class Recomputer {
 public:
  Recomputer(const Graph& local, const Recomputation& recomputation)
      : source_(local), recomputation_(recomputation), rewriter_(local, Level::kLocal) {
    if (recomputation.Has(RecomputeKind::kSelective)) large_ = LargeProducts(local);
  }

  Graph Run() {
    for (const Node& node : source_.nodes()) {
      if (node.phase != Phase::kBackward) {
        rewriter_.Copy(node);
        continue;
      }
      Node copy = node;
      for (ValueId& id : copy.inputs) id = Again(id, node);
      if (const ValueId known = FindExchange(copy, node); known != kNone) {
        rewriter_.Map(node.outputs[0], known);
      } else {
        Remember(rewriter_.CopyReading(node, std::move(copy.inputs)));
      }
    }
    return std::move(rewriter_).Finish();
  }

 private:
  bool IsRecomputed(const Node& node) const {
    if (node.phase != Phase::kForward) return false;
    const bool in_layer = node.layer >= 0 && node.layer < source_.num_layers();
    switch (recomputation_.Of(node.layer)) {
      case RecomputeKind::kNone:
        return false;
      case RecomputeKind::kSelective:
        return node.op->Has(OpRole::kRecompute) || IsLarge(node);
      case RecomputeKind::kFull:
        return in_layer && !node.op->Has(OpRole::kCollect);
    }
    return false;
  }

  bool IsLarge(const Node& node) const {
    const size_t index = static_cast<size_t>(&node - source_.nodes().data());
    return !large_.empty() && large_[index];
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
    if (const ValueId known = FindExchange(copy, *node); known != kNone) {
      return copies_[old] = known;
    }
    std::vector<Value> results;
    for (ValueId id : node->outputs) {
      results.push_back(source_.value(id));
      results.back().name += ".again";
    }
    const NodeId made = rewriter_.builder().AppendRaw(std::move(copy), std::move(results));
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      copies_[node->outputs[i]] = rewriter_.builder().graph().node(made).outputs[i];
    }
    Remember(made);
    return copies_.at(old);
  }

  // What a collective of a layer's backward has made of the same operand: what backward gathers for
  // itself, the recomputed forward need not gather again, and the other way round. `made` reads new
  // values, `node` is of the old graph.
  ValueId FindExchange(const Node& made, const Node& node) const {
    if (!node.op->collective) return kNone;
    const Graph& graph = rewriter_.builder().graph();
    const auto [begin, end] = exchanges_.equal_range(made.inputs[0]);
    for (auto it = begin; it != end; ++it) {
      const Node& known = graph.node(it->second);
      const ValueId result = known.outputs[0];
      const bool same = known.op == made.op && known.attrs == made.attrs &&
                        known.layer == made.layer &&
                        graph.type(result) == source_.type(node.outputs[0]) &&
                        graph.sharding(result) == source_.sharding(node.outputs[0]);
      if (same) return result;
    }
    return kNone;
  }
  void Remember(NodeId made) {
    const Node& node = rewriter_.builder().graph().node(made);
    if (node.op->collective) exchanges_.emplace(node.inputs[0], made);
  }

  const Graph& source_;
  const Recomputation& recomputation_;
  Rewriter rewriter_;
  std::vector<bool> large_;                   // by node, where some recomputation is selective
  std::map<ValueId, ValueId> copies_;         // old value -> its copy in backward
  std::multimap<ValueId, NodeId> exchanges_;  // backward's collectives by operand, all new
};

}  // namespace

Graph Recompute(const Graph& local, const Recomputation& recomputation) {
  if (!recomputation.Any()) return local;
  return DropDeadNodes(Recomputer(local, recomputation).Run());
}

}  // namespace mgc
