#include "passes/plan/stage/build_segment.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "graph/ir/model_layers.h"
#include "graph/ir/op.h"
#include "graph/ir/step_vector.h"
#include "graph/plan/instr_collective.h"
#include "passes/plan/stage/fold_segments.h"

namespace mgc {
namespace {

std::string SegmentName(const Part& part, int num_layers) {
  const std::string kind = part.layer == kNoLayer ? "step" : LayerKind(part.layer, num_layers);
  if (part.phase != Phase::kUpdate) {
    const char* does = part.number == kGatherPart    ? ".gather"
                       : part.number == kReducePart  ? ".reduce"
                       : part.number == kCollectPart ? ".collect"
                                                     : "";
    return absl::StrCat(kind, ".", NameOf(part.phase), does);
  }
  if (part.number == kReducePart) return absl::StrCat(kind, ".reduce");
  return absl::StrCat(kind, ".update", part.number);
}

// Whether later calls wait for a part's collectives.
bool RunsOn(const Part& part) {
  return part.phase == Phase::kPrepare || part.number == kReducePart || part.number == kGatherPart;
}

bool IsData(const Parts& parts, ValueId id) {
  if (parts.graph().value(id).producer != kNone || parts.ParamOf(id) != kNone) return false;
  const GraphInput* input = parts.graph().FindInput(id);
  return input != nullptr && input->kind == InputKind::kData;
}

// One sum between the classes that hold copies of a parameter.
void SumCopies(const SegmentContext& context, ValueId param, Instr* start) {
  const std::vector<int>& classes = context.places->shared()->ClassesOf(param);
  const bool ends = classes == EndClasses(*context.stages);
  start->op = FindOp("all_reduce");
  start->attrs = {{"label", std::string(ends ? "embedding" : "shared")}};
  SetJoinedClasses(classes, *context.stages, start);
}

class Builder {
 public:
  Builder(const SegmentContext& context, const Part& part)
      : context_(context),
        parts_(context.places->parts()),
        graph_(parts_.graph()),
        part_(part),
        slots_(context, part, &segment_) {
    segment_.name = SegmentName(part, graph_.num_layers());
  }

  Segment Run(const std::vector<NodeId>& nodes) {
    LoadData(nodes);
    if (IsOfMicroBatch(part_.phase) && !RunsOn(part_)) {
      for (NodeId id : nodes) Add(graph_.node(id));
    } else {
      InWaves(nodes);
    }
    for (size_t c = 0; !RunsOn(part_) && c < pending_.size(); ++c) Wait(static_cast<int>(c));
    return std::move(segment_);
  }

 private:
  void LoadData(const std::vector<NodeId>& nodes) {
    for (NodeId n : nodes) {
      for (ValueId id : graph_.node(n).inputs) {
        if (!IsData(parts_, id) || slots_.Has(id)) continue;
        Instr load;
        load.kind = InstrKind::kLoad;
        load.attrs.Set("name", graph_.value(id).name);
        load.outputs = {slots_.Of(id)};
        load.phase = part_.phase;
        load.origin = "data";
        segment_.instrs.push_back(std::move(load));
      }
    }
  }

  // Between layers and once a step: everything that is ready runs, then all collectives that became
  // ready, those of one kind and group together as one bucket.
  void InWaves(std::vector<NodeId> nodes) {
    while (!nodes.empty()) {
      std::vector<NodeId> later;
      std::map<std::tuple<CollectiveKind, uint32_t, std::string>, std::vector<NodeId>> buckets;
      for (NodeId id : nodes) {
        const Node& node = graph_.node(id);
        if (WaitsForNode(node, later, buckets)) {
          later.push_back(id);
        } else if (node.op->collective && CollectiveOf(graph_, node).MovesData()) {
          const Collective c = CollectiveOf(graph_, node);
          buckets[{c.kind, c.axes.AsSet().bits(), node.attrs.Text("label")}].push_back(id);
        } else {
          Add(node);
        }
      }
      for (const auto& [key, bucket] : buckets) AddBucket(bucket);
      nodes = std::move(later);
    }
  }

  template <class Buckets>
  bool WaitsForNode(const Node& node, const std::vector<NodeId>& later,
                    const Buckets& buckets) const {
    for (ValueId input : node.inputs) {
      const NodeId producer = graph_.value(input).producer;
      if (producer == kNone) continue;
      if (std::find(later.begin(), later.end(), producer) != later.end()) return true;
      for (const auto& [key, bucket] : buckets) {
        if (std::find(bucket.begin(), bucket.end(), producer) != bucket.end()) return true;
      }
    }
    return false;
  }

  void Add(const Node& node) {
    const OpDef& op = *node.op;
    if (PacksStepVector(node)) return;  // its operands lie in place
    if (op.Has(OpRole::kSum) && node.phase == Phase::kUpdate && AddTied(node)) return;
    if (op.collective && CollectiveOf(graph_, node).kind == CollectiveKind::kLift) {
      AddLift(node);
      return;
    }
    if (op.collective && CollectiveOf(graph_, node).MovesData()) {
      AddBucket({static_cast<NodeId>(&node - graph_.nodes().data())});
      return;
    }
    for (ValueId id : node.inputs) WaitFor(id);
    AddCompute(node, node.inputs);
  }

  void AddCompute(const Node& node, const std::vector<ValueId>& inputs) {
    Instr instr = NewInstr(node, InstrKind::kCompute);
    for (ValueId id : inputs) instr.inputs.push_back(slots_.Of(id));
    for (ValueId id : node.outputs) instr.outputs.push_back(slots_.Of(id));
    segment_.instrs.push_back(std::move(instr));
  }

  // The sums of a tied parameter's gradient: those that the class holds are added in the place of
  // the first, and the result is summed over the classes that hold the others.
  bool AddTied(const Node& node) {
    std::vector<ValueId> held;
    for (ValueId id : node.inputs) {
      const int layer = parts_.SourceLayer(id);
      if (layer == kNoLayer) return false;
      if (context_.holds(layer)) held.push_back(id);
    }
    if (held.size() == node.inputs.size()) return false;
    for (ValueId id : held) WaitFor(id);
    slots_.StandIn(node.outputs[0], held[0]);
    if (held.size() > 1) AddCompute(node, held);
    Instr start = NewInstr(node, InstrKind::kStart);
    SumCopies(context_, parts_.ParamOf(node.outputs[0]), &start);
    start.inputs = {slots_.Of(held.size() > 1 ? node.outputs[0] : held[0])};
    start.outputs = start.inputs;
    Start(std::move(start), {node.outputs[0]});
    return true;
  }

  // What one stage makes is owed over pp already: the others contribute nothing. A lift over
  // further axes keeps it on their first rank; without any it is a copy.
  void AddLift(const Node& node) {
    const AxisSet stages = graph_.mesh().Find("pp").AsSet();
    WaitFor(node.inputs[0]);
    Instr lift = NewInstr(node, InstrKind::kCompute);
    lift.inputs = {slots_.Of(node.inputs[0])};
    lift.outputs = {slots_.Of(node.outputs[0])};
    Sharding& from = segment_.slots[lift.inputs[0]].sharding;
    const Sharding& to = segment_.slots[lift.outputs[0]].sharding;
    from.sum |= to.sum & stages;
    if (from == to) {
      lift.op = FindOp("reshard");
      lift.attrs = {};
    }
    segment_.instrs.push_back(std::move(lift));
  }

  void AddBucket(const std::vector<NodeId>& bucket) {
    Instr start = NewInstr(graph_.node(bucket[0]), InstrKind::kStart);
    std::vector<ValueId> results;
    for (NodeId id : bucket) {
      const Node& node = graph_.node(id);
      WaitFor(node.inputs[0]);
      start.inputs.push_back(slots_.Of(node.inputs[0]));
      start.outputs.push_back(slots_.Of(node.outputs[0]));
      results.push_back(node.outputs[0]);
    }
    Start(std::move(start), std::move(results));
  }

  void Start(Instr start, std::vector<ValueId> results) {
    start.collective = segment_.num_collectives++;
    segment_.instrs.push_back(std::move(start));
    pending_.push_back(std::move(results));
  }

  void WaitFor(ValueId id) {
    for (size_t c = 0; c < pending_.size(); ++c) {
      if (std::find(pending_[c].begin(), pending_[c].end(), id) != pending_[c].end()) {
        Wait(static_cast<int>(c));
      }
    }
  }

  void Wait(int collective) {
    if (pending_[collective].empty()) return;
    pending_[collective].clear();
    Instr wait;
    wait.kind = InstrKind::kWait;
    wait.collective = collective;
    wait.phase = part_.phase;
    segment_.instrs.push_back(std::move(wait));
  }

  Instr NewInstr(const Node& node, InstrKind kind) const {
    Instr instr;
    instr.kind = kind;
    instr.op = node.op;
    for (const Attrs::Entry& entry : node.attrs) {
      const std::string* text = std::get_if<std::string>(&entry.second);
      instr.attrs.Set(entry.first, text == nullptr ? entry.second
                                                   : AttrValue(FoldName(*text, part_.layer,
                                                                        graph_.num_layers())));
    }
    instr.phase = node.phase;
    instr.loc = node.loc;
    instr.origin = FoldName(node.origin, node.layer, graph_.num_layers());
    return instr;
  }

  const SegmentContext& context_;
  const Parts& parts_;
  const Graph& graph_;
  const Part part_;
  Segment segment_;
  SlotTable slots_;
  std::vector<std::vector<ValueId>> pending_;  // by collective: results not waited for yet
};

}  // namespace

Segment BuildSegment(const SegmentContext& context, const Part& part,
                     const std::vector<NodeId>& nodes) {
  return Builder(context, part).Run(nodes);
}

Segment RelaySegment(const Graph& graph, const std::vector<HandedValue>& values, Phase phase) {
  Segment segment;
  segment.name = absl::StrCat("relay.", NameOf(phase));
  segment.formals = {{}};
  const auto add_slot = [&](const HandedValue& handed, bool in) {
    const Value& value = graph.value(handed.value);
    const ValuePlace& place = in ? handed.from : handed.to;
    const bool is_stream = handed.to.formal.block.empty();
    const std::string name =
        is_stream ? "stream" : FoldName(value.name, kNoLayer, graph.num_layers());
    const int64_t bytes = NumElements(graph.local_shape(handed.value)) * SizeOf(value.type.dtype);
    segment.slots.push_back({absl::StrCat(name, in ? ".in" : ".out"), value.type, *value.sharding,
                             NumberOf(place.formal, &segment), place.offset, bytes});
    return static_cast<int>(segment.slots.size()) - 1;
  };
  for (const HandedValue& handed : values) {
    Instr copy;
    copy.op = FindOp("reshard");
    copy.inputs = {add_slot(handed, true)};
    copy.outputs = {add_slot(handed, false)};
    copy.phase = phase;
    copy.origin = handed.to.formal.block.empty() ? "a chunk without layers" : "a value for others";
    segment.instrs.push_back(std::move(copy));
  }
  return segment;
}

}  // namespace mgc
