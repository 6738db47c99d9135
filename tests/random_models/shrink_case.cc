// Makes a failing case small.

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "tests/random_models/random_case.h"

namespace mgc {
namespace {

// What of a graph is left out: the results of a node, for which an operand of its type stands, and
// one of the outputs.
struct LeftOut {
  NodeId node = kNone;
  ValueId stands_in = kNone;  // for the node's first result
  int output = -1;
};

// The values that outputs depend on.
std::vector<bool> Needed(const Graph& graph, const LeftOut& out) {
  std::vector<bool> needed(graph.values().size(), false);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (static_cast<int>(i) != out.output) {
      needed[static_cast<size_t>(graph.outputs()[i].value)] = true;
    }
  }
  for (NodeId n = static_cast<NodeId>(graph.nodes().size()); n-- > 0;) {
    const Node& node = graph.node(n);
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
    if (!used) continue;
    if (n == out.node) {
      needed[static_cast<size_t>(out.stands_in)] = true;
      continue;
    }
    for (ValueId id : node.inputs) needed[static_cast<size_t>(id)] = true;
  }
  return needed;
}

Graph Without(const Graph& graph, const LeftOut& out) {
  const std::vector<bool> needed = Needed(graph, out);
  GraphBuilder builder(graph.name());
  builder.set_num_layers(graph.num_layers());
  std::vector<ValueId> map(graph.values().size(), kNone);
  for (const GraphInput& input : graph.inputs()) {
    const auto at = static_cast<size_t>(input.value);
    const Value& value = graph.value(input.value);
    if (needed[at]) map[at] = builder.AddInput(value.name, value.type, input.kind, input.attrs);
  }
  for (NodeId n = 0; n < static_cast<NodeId>(graph.nodes().size()); ++n) {
    Node node = graph.node(n);
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return needed[static_cast<size_t>(id)]; });
    if (!used) continue;
    if (n == out.node) {
      map[static_cast<size_t>(node.outputs[0])] = map[static_cast<size_t>(out.stands_in)];
      continue;
    }
    std::vector<Value> results;
    for (ValueId& id : node.inputs) id = map[static_cast<size_t>(id)];
    for (ValueId id : node.outputs) results.push_back(graph.value(id));
    const std::vector<ValueId> old = node.outputs;
    const NodeId made = builder.AppendRaw(std::move(node), std::move(results));
    for (size_t i = 0; i < old.size(); ++i) {
      map[static_cast<size_t>(old[i])] = builder.graph().node(made).outputs[i];
    }
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    GraphOutput output = graph.outputs()[i];
    if (static_cast<int>(i) == out.output) continue;
    output.value = map[static_cast<size_t>(output.value)];
    builder.AddOutput(std::move(output));
  }
  return std::move(builder).Finish();
}

std::vector<LeftOut> Choices(const Graph& graph) {
  std::vector<LeftOut> choices;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i].kind != OutputKind::kLoss) continue;
    choices.push_back({kNone, kNone, static_cast<int>(i)});
  }
  for (NodeId n = static_cast<NodeId>(graph.nodes().size()); n-- > 0;) {
    const Node& node = graph.node(n);
    for (ValueId id : node.inputs) {
      const TensorType& type = graph.type(id);
      if (SizesOf(type) == SizesOf(graph.type(node.outputs[0])) &&
          type.dtype == graph.type(node.outputs[0]).dtype) {
        choices.push_back({n, id, -1});
      }
    }
  }
  return choices;
}

using Change = std::function<void(ParallelConfig*)>;

// Each makes the configuration simpler; ranks along dp become samples of a micro-batch.
std::vector<Change> Changes() {
  const auto fewer = [](int64_t ParallelConfig::*axis) {
    return [axis](ParallelConfig* p) {
      p->world_size /= p->*axis;
      p->*axis = 1;
      if (p->tp == 1) p->sequence_parallel = false;
      if (p->pp == 1) p->vp = 0, p->schedule = ScheduleKind::kOneFOneB;
    };
  };
  return {
      fewer(&ParallelConfig::pp),
      fewer(&ParallelConfig::cp),
      fewer(&ParallelConfig::tp),
      [](ParallelConfig* p) {
        const int64_t dp = DataParallelSize(*p);
        p->micro_batch_size *= dp;
        p->world_size /= dp;
      },
      [](ParallelConfig* p) { p->vp = 0, p->schedule = ScheduleKind::kOneFOneB; },
      [](ParallelConfig* p) { p->sequence_parallel = false; },
      [](ParallelConfig* p) { p->zero = 0, p->zero_group = 0; },
      [](ParallelConfig* p) { p->zero_group = 0; },
      [](ParallelConfig* p) { p->split_products = 1; },
      [](ParallelConfig* p) { p->recompute = RecomputeKind::kNone; },
      [](ParallelConfig* p) { p->global_batch_size = p->micro_batch_size * DataParallelSize(*p); }};
}

class Shrinker {
 public:
  Shrinker(const RandomCase& c, bool train, int tries)
      : best_(c), train_(train), left_(tries), wanted_(Try(c, train)) {}

  RandomCase Run() && {
    while (left_ > 0 && (Simpler() || Smaller())) {
    }
    return std::move(best_);
  }

 private:
  bool Fails(const RandomCase& c) {
    if (left_-- <= 0) return false;
    const Outcome outcome = Try(c, train_);
    return outcome.ending == wanted_.ending && outcome.label == wanted_.label;
  }

  bool Simpler() {
    bool found = false;
    for (const Change& change : Changes()) {
      RandomCase c = best_;
      change(&c.parallel);
      if (SameConfig(c.parallel, best_.parallel) || !Fails(c)) continue;
      best_ = std::move(c);
      found = true;
    }
    return found;
  }

  static bool SameConfig(const ParallelConfig& a, const ParallelConfig& b) {
    return a.world_size == b.world_size && a.vp == b.vp && a.schedule == b.schedule &&
           a.sequence_parallel == b.sequence_parallel && a.zero == b.zero &&
           a.zero_group == b.zero_group && a.recompute == b.recompute &&
           a.split_products == b.split_products && a.global_batch_size == b.global_batch_size;
  }

  bool Smaller() {
    for (const LeftOut& out : Choices(best_.model)) {
      RandomCase c = best_;
      c.model = Without(best_.model, out);
      if (!CheckGraph(c.model).ok() || !Fails(c)) continue;
      best_ = std::move(c);
      return true;
    }
    return false;
  }

  RandomCase best_;
  const bool train_;
  int left_;
  const Outcome wanted_;
};

}  // namespace

RandomCase Shrink(const RandomCase& c, bool train, int tries) {
  return Shrinker(c, train, tries).Run();
}

}  // namespace mgc
