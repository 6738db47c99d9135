#include "passes/graph/overlap.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "graph/ir/collective.h"
#include "graph/ir/op.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

// Nodes of one layer in one phase that stand together.
class LayerOrder {
 public:
  // `nodes` in program order; `users` of the whole graph, by value.
  LayerOrder(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
             std::vector<NodeId> nodes)
      : graph_(graph), users_(users), nodes_(std::move(nodes)) {
    for (size_t i = 0; i < nodes_.size(); ++i) place_[nodes_[i]] = i;
    done_.assign(nodes_.size(), false);
    started_.assign(nodes_.size(), 0);
    before_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (ValueId id : graph_.node(nodes_[i]).inputs) {
        const auto found = place_.find(graph_.value(id).producer);
        if (found != place_.end()) before_[i].push_back(found->second);
      }
    }
  }

  std::vector<NodeId> Run() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!IsExchange(i) || done_[i]) continue;
      const std::vector<bool> leads = LeadsTo(i);
      while (
          std::any_of(before_[i].begin(), before_[i].end(), [&](size_t b) { return !done_[b]; })) {
        if (PutFree(leads)) continue;
        // All that is left on the way must wait.
        const size_t next = FirstReady(leads);
        PutBeside(WaitOf(next));
        Put(next);
      }
      Put(i);
    }
    const std::vector<bool> all(nodes_.size(), true);
    do {
      PutFree(all);
      const size_t next = FirstReady(all);
      if (next == nodes_.size()) return std::move(order_);
      Put(next);
    } while (true);
  }

 private:
  bool IsExchange(size_t i) const {
    const Node& node = graph_.node(nodes_[i]);
    if (!node.op->collective || !CollectiveOf(graph_, node).MovesData()) return false;
    // Stage takes what gathers from pieces, or sums into them, out of the layer.
    return graph_.sharding(node.inputs[0]).storage == graph_.sharding(node.outputs[0]).storage;
  }

  // The nodes that `end` reads from, directly or not.
  std::vector<bool> LeadsTo(size_t end) const {
    std::vector<bool> leads(nodes_.size(), false);
    leads[end] = true;
    for (size_t i = end + 1; i-- > 0;) {
      if (!leads[i]) continue;
      for (size_t b : before_[i]) leads[b] = true;
    }
    leads[end] = false;
    return leads;
  }

  bool IsReady(size_t i) const {
    return std::all_of(before_[i].begin(), before_[i].end(), [&](size_t b) { return done_[b]; });
  }
  // The latest collective that the node waits for, counted from 1; 0: none that still runs.
  size_t WaitOf(size_t i) const {
    size_t latest = 0;
    for (size_t b : before_[i]) latest = std::max(latest, started_[b] > waited_ ? started_[b] : 0);
    return latest;
  }

  // Those of `among` that can run and wait for no collective; whether there was one.
  bool PutFree(const std::vector<bool>& among) {
    bool any = false;
    for (size_t i = first_; i < nodes_.size(); ++i) {
      if (!among[i] || done_[i] || IsExchange(i) || !IsReady(i) || WaitOf(i) > 0) continue;
      Put(i);
      any = true;
    }
    return any;
  }

  // What can run while collective `running` does, where one before it may be waited for: they end
  // in the order of their starts. Up to one product, which takes longer than most collectives; the
  // others are for the collectives to come.
  void PutBeside(size_t running) {
    for (size_t i = first_; i < nodes_.size(); ++i) {
      if (done_[i] || IsExchange(i) || !IsReady(i) || WaitOf(i) >= running) continue;
      Put(i);
      if (graph_.node(nodes_[i]).op->precision == Precision::kNarrow) return;
    }
  }

  // Of `among`, the first that can run; their number where there is none.
  size_t FirstReady(const std::vector<bool>& among) const {
    size_t i = first_;
    while (i < nodes_.size() && (!among[i] || done_[i] || !IsReady(i))) ++i;
    return i;
  }

  // With what collects a result, which then need not live on.
  void Put(size_t i) {
    waited_ = std::max(waited_, WaitOf(i));
    done_[i] = true;
    while (first_ < nodes_.size() && done_[first_]) ++first_;
    order_.push_back(nodes_[i]);
    if (IsExchange(i)) {
      started_[i] = ++starts_;
      return;
    }
    for (ValueId id : graph_.node(nodes_[i]).outputs) {
      for (NodeId user : users_[static_cast<size_t>(id)]) {
        const auto found = place_.find(user);
        const bool collects = found != place_.end() && graph_.node(user).op->Has(OpRole::kCollect);
        if (collects && !done_[found->second] && IsReady(found->second)) Put(found->second);
      }
    }
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>>& users_;
  const std::vector<NodeId> nodes_;
  std::map<NodeId, size_t> place_;           // in nodes_; the vectors below likewise
  std::vector<std::vector<size_t>> before_;  // whose results are read
  std::vector<bool> done_;
  size_t first_ = 0;             // that is not done
  std::vector<size_t> started_;  // of a collective that has been started: its number, from 1
  size_t starts_ = 0;
  size_t waited_ = 0;  // the latest that something has waited for
  std::vector<NodeId> order_;
};

}  // namespace

Graph Overlap(const Graph& local) {
  const std::vector<Node>& nodes = local.nodes();
  const std::vector<std::vector<NodeId>> users = local.Users();
  Rewriter rewriter(local, Level::kLocal);
  for (size_t n = 0; n < nodes.size();) {
    // Nodes of a layer stand together.
    std::vector<NodeId> together;
    const Node& first = nodes[n];
    for (; n < nodes.size() && nodes[n].phase == first.phase && nodes[n].layer == first.layer;
         ++n) {
      together.push_back(static_cast<NodeId>(n));
    }
    if (IsOfMicroBatch(first.phase)) together = LayerOrder(local, users, std::move(together)).Run();
    for (NodeId node : together) rewriter.Copy(local.node(node));
  }
  return std::move(rewriter).Finish();
}

}  // namespace mgc
