#include "passes/graph/shard/partition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/types/even_cut.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

bool IsPrefix(const AxisList& prefix, const AxisList& list) {
  if (prefix.size() > list.size()) return false;
  for (int i = 0; i < prefix.size(); ++i) {
    if (prefix[i] != list[i]) return false;
  }
  return true;
}

// Finds the steps by changing a current sharding until it is the wanted one.
class ShardingPath {
 public:
  ShardingPath(Sharding from, const Sharding& to, const TensorType& type, const Mesh& mesh)
      : now_(std::move(from)), to_(to), type_(type), mesh_(mesh) {}

  std::vector<ShardingStep> Find() {
    // Flat pieces are pieces of one tile, padded: where dims change, they are put together before
    // and cut after, and never cut further.
    if (now_.dims != to_.dims) Gather(&now_.storage, AxisList());
    for (size_t d = 0; d < now_.dims.size(); ++d) {
      if (Nest(d, now_.dims[d], to_.dims[d])) Scatter(&now_.dims[d], to_.dims[d]);
    }
    const bool one_cut = (now_.sum - to_.sum).ContainsAll(to_.storage.AsSet());
    if (now_.dims == to_.dims && now_.storage.empty() && one_cut) {
      Scatter(&now_.storage, to_.storage);
    }
    if (const AxisSet paid = now_.sum - to_.sum; !paid.empty()) {
      now_.sum -= paid;
      Step("all_reduce");
    }
    if (const AxisSet paid = now_.max - to_.max; !paid.empty()) {
      now_.max -= paid;
      Step("all_reduce");
    }
    MoveAxes();
    if (now_.storage != to_.storage) Gather(&now_.storage, AxisList());
    for (size_t d = 0; d < now_.dims.size(); ++d) GatherDim(d);
    for (size_t d = 0; d < now_.dims.size(); ++d) Slice(&now_.dims[d], to_.dims[d]);
    Slice(&now_.storage, to_.storage);
    if (now_.sum != to_.sum) {
      now_.sum = to_.sum;
      Step("lift");
    }
    return std::move(steps_);
  }

 private:
  void Step(const char* op) { steps_.push_back({op, now_}); }

  // Whether pieces of a dim over two lists nest, one of which begins with the other.
  bool Nest(size_t dim, const AxisList& a, const AxisList& b) const {
    return PiecesNest(type_.dims[dim], a, b, mesh_);
  }

  // The axes a list gains while a sum over them is owed.
  void Scatter(AxisList* list, const AxisList& wanted) {
    if (!IsPrefix(*list, wanted)) return;
    bool any = false;
    for (int i = list->size();
         i < wanted.size() && now_.sum.Contains(wanted[i]) && !to_.sum.Contains(wanted[i]); ++i) {
      list->push_back(wanted[i]);
      now_.sum.Remove(wanted[i]);
      any = true;
    }
    if (any) Step("reduce_scatter");
  }

  // Moves runs of minor axes from one dim to the end of another.
  void MoveAxes() {
    for (size_t d = 0; d < now_.dims.size(); ++d) {
      AxisList& from = now_.dims[d];
      for (size_t e = 0; e < now_.dims.size(); ++e) {
        AxisList& to = now_.dims[e];
        const AxisList& wanted = to_.dims[e];
        if (&from == &to || !IsPrefix(to, wanted) || to.size() == wanted.size()) continue;
        const int run = wanted.size() - to.size();
        bool moves = from.size() >= run;
        for (int i = 0; moves && i < run; ++i) {
          moves = from[from.size() - run + i] == wanted[to.size() + i];
        }
        AxisList left = from;
        for (int i = 0; moves && i < run; ++i) left.pop_back();
        if (!moves || !Nest(d, left, from) || !Nest(e, to, wanted)) continue;
        from = left;
        to = wanted;
        Step("all_to_all");
      }
    }
  }

  void Gather(AxisList* list, const AxisList& wanted) {
    if (IsPrefix(*list, wanted)) return;
    while (!IsPrefix(*list, wanted)) list->pop_back();
    Step("all_gather");
  }

  // What stays cut must be what the wanted pieces are cut from.
  void GatherDim(size_t dim) {
    AxisList kept = now_.dims[dim];
    while (!IsPrefix(kept, to_.dims[dim])) kept.pop_back();
    const bool nest = Nest(dim, kept, now_.dims[dim]) && Nest(dim, kept, to_.dims[dim]);
    Gather(&now_.dims[dim], nest ? to_.dims[dim] : AxisList());
  }

  void Slice(AxisList* list, const AxisList& wanted) {
    if (*list == wanted) return;
    *list = wanted;
    Step("shard_slice");
  }

  Sharding now_;
  const Sharding& to_;
  const TensorType& type_;
  const Mesh& mesh_;
  std::vector<ShardingStep> steps_;
};

}  // namespace

std::vector<ShardingStep> StepsBetween(const Sharding& from, const Sharding& to,
                                       const TensorType& type, const Mesh& mesh) {
  return ShardingPath(from, to, type, mesh).Find();
}

Graph Partition(const Graph& sharded) {
  Rewriter rewriter(sharded, Level::kLocal);
  for (const Node& node : sharded.nodes()) {
    if (!node.op->Has(OpRole::kReshard)) {
      rewriter.Copy(node);
      continue;
    }
    const Value& result = sharded.value(node.outputs[0]);
    const std::vector<ShardingStep> steps = StepsBetween(
        sharded.sharding(node.inputs[0]), *result.sharding, result.type, sharded.mesh());
    Attrs attrs;
    if (const AttrValue* label = node.attrs.Find(kLabelAttr)) attrs.Set(kLabelAttr, *label);
    ValueId now = rewriter.Mapped(node.inputs[0]);
    for (size_t i = 0; i < steps.size(); ++i) {
      Node step = node;
      step.op = FindOp(steps[i].op);
      step.attrs = attrs;
      step.inputs = {now};
      Value value = result;
      value.sharding = steps[i].result;
      if (value.primal != kNone) value.primal = rewriter.Mapped(value.primal);
      if (i + 1 < steps.size()) value.name = absl::StrCat(result.name, ".step", i + 1);
      const NodeId made = rewriter.builder().AppendRaw(std::move(step), {std::move(value)});
      now = rewriter.builder().graph().node(made).outputs[0];
    }
    rewriter.Map(node.outputs[0], now);
  }
  return std::move(rewriter).Finish();
}

}  // namespace mgc
