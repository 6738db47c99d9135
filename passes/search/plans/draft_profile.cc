#include "passes/search/plans/draft_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/place_transients.h"

namespace mgc {
namespace {

Region RegionOf(const Segment& segment, const Slot& slot) {
  return segment.formals[static_cast<size_t>(slot.formal)].region;
}

bool IsOfGrads(const Segment& segment, int slot) {
  return RegionOf(segment, segment.slots[static_cast<size_t>(slot)]) == Region::kGrads;
}

// A backward as it is where gradients are summed in turn: what it would add to accumulators it
// leaves there as it is made.
Segment WithoutAccumulators(Segment segment) {
  std::vector<Instr> instrs;
  instrs.reserve(segment.instrs.size());
  std::map<int, int> added;  // slots that only an accumulator reads, and that one
  for (Instr& instr : segment.instrs) {
    const bool collects = instr.kind == InstrKind::kCompute && !instr.outputs.empty() &&
                          IsOfGrads(segment, instr.outputs[0]);
    if (collects) {
      absl::string_view name = instr.op->name;
      const OpDef* op = absl::ConsumeSuffix(&name, "_accumulate") ? FindOp(name) : nullptr;
      if (op == nullptr) {  // it adds, and does nothing else
        if (instr.inputs.size() == 2) added[instr.inputs[1]] = instr.outputs[0];
        continue;
      }
      instr.op = op;
      const std::vector<int>& typed = op->type_operands;
      const bool reads_type = std::find(typed.begin(), typed.end(), 0) != typed.end();
      if (!reads_type) instr.inputs.erase(instr.inputs.begin());
    }
    instrs.push_back(std::move(instr));
  }
  for (Instr& instr : instrs) {
    for (std::vector<int>* slots : {&instr.inputs, &instr.outputs}) {
      for (int& slot : *slots) {
        const auto found = added.find(slot);
        if (found != added.end()) slot = found->second;
      }
    }
  }
  segment.instrs = std::move(instrs);
  return segment;
}

std::vector<GroupExchange> ExchangesOf(const StagedPlan& staged, const Segment& segment) {
  std::vector<GroupExchange> exchanges;
  for (const Instr& instr : segment.instrs) {
    if (instr.kind != InstrKind::kStart) continue;
    const InstrCollective collective = CollectiveOf(staged.mesh, staged.stages, segment, instr);
    exchanges.push_back({collective.axes(), collective.kind(), collective.payload_bytes});
  }
  return exchanges;
}

// Of segments that run one after another.
LayerSteps StepsOf(const StagedPlan& staged, const Machine& machine,
                   const std::vector<int>& segments, bool in_turn) {
  const CostModel costs{staged.mesh, machine, staged.stages};
  LayerSteps made;
  for (const int s : segments) {
    const Segment& as_it_is = staged.segments[static_cast<size_t>(s)];
    Segment segment = in_turn ? WithoutAccumulators(as_it_is) : as_it_is;
    const auto before = static_cast<int>(made.exchanges.size());
    for (TimedStep step : TimeSegment(costs, segment, 0)) {
      step.collective += before;
      made.steps.push_back(step);
    }
    const std::vector<GroupExchange> exchanges = ExchangesOf(staged, segment);
    made.exchanges.insert(made.exchanges.end(), exchanges.begin(), exchanges.end());
    PlaceTransients(&segment);
    made.transient_bytes = std::max(made.transient_bytes, segment.transient_bytes);
  }
  return made;
}

// The segments of a layer's forward and backward.
struct LayerParts {
  std::vector<int> forward;
  std::vector<int> backward;

  friend bool operator<(const LayerParts& a, const LayerParts& b) {
    return std::tie(a.forward, a.backward) < std::tie(b.forward, b.backward);
  }
};

std::vector<LayerParts> PartsByLayer(const StagedPlan& staged, const ModelProfile& profile) {
  const StagedChunk& chunk = staged.classes.front().train.chunks.front();
  std::vector<LayerParts> layers(profile.layers.size());
  for (const StagedCall& call : chunk.forward) {
    layers[profile.PlaceOf(call.layer)].forward.push_back(call.segment);
  }
  for (const StagedCall& call : chunk.backward) {
    layers[profile.PlaceOf(call.layer)].backward.push_back(call.segment);
  }
  return layers;
}

LayerOrder OrderOf(const StagedPlan& staged, const Machine& machine, const LayerParts& parts) {
  return {StepsOf(staged, machine, parts.forward, false),
          StepsOf(staged, machine, parts.backward, false),
          StepsOf(staged, machine, parts.backward, true)};
}

// What a segment computes beside what it takes to start its ops, and how many these are.
std::pair<int64_t, int64_t> ComputeOf(const CostModel& costs, const Segment& segment) {
  int64_t ns = 0;
  int64_t ops = 0;
  for (const Instr& instr : segment.instrs) {
    if (instr.kind == InstrKind::kStart || instr.kind == InstrKind::kWait) continue;
    ns = Later(ns, ComputeNs(costs, segment, instr));
    ++ops;
  }
  const double overhead = static_cast<double>(ops) * costs.machine.op_overhead * 1e9;
  return {std::max<int64_t>(0, ns - static_cast<int64_t>(overhead)), ops};
}

// Of a segment that makes copies. Parameters that are not cast are gathered as they are.
int64_t MoreGathered(const Segment& segment) {
  int64_t bytes = 0;
  for (const Slot& slot : segment.slots) {
    const Formal& formal = segment.formals[static_cast<size_t>(slot.formal)];
    if (formal.region == Region::kParams && formal.block.empty()) bytes -= slot.bytes;
    if (formal.region == Region::kCopies) bytes += slot.bytes;
  }
  return bytes;
}

// The parameters of every layer.
class ParamReader {
 public:
  explicit ParamReader(size_t layers) : params_(layers), offsets_(layers) {}

  void Add(const StagedPlan& staged, const ParamBlock& block, size_t layer) {
    const bool is_tied = block.name == "tied";
    for (const ParamEntry& entry : block.entries) {
      ParamSize size;
      size.elements = NumElements(LocalShape(entry.type, entry.sharding, staged.mesh));
      size.element_bytes = SizeOf(entry.type.dtype);
      size.states = static_cast<int64_t>(entry.states.size());
      if (is_tied) tied_ = size;
      params_[layer].push_back(size);
      offsets_[layer].push_back(is_tied ? -1 : entry.param_offset);
    }
  }

  // Of a segment that makes copies, those that are cast from parameters.
  void AddCasts(const Segment& segment, size_t layer) {
    for (const Instr& instr : segment.instrs) {
      if (instr.inputs.size() != 1 || instr.outputs.size() != 1) continue;
      const Slot& from = segment.slots[static_cast<size_t>(instr.inputs[0])];
      const Slot& to = segment.slots[static_cast<size_t>(instr.outputs[0])];
      if (RegionOf(segment, from) != Region::kParams) continue;
      const int64_t bytes = SizeOf(to.type.dtype);
      if (!segment.formals[static_cast<size_t>(from.formal)].block.empty()) {
        tied_.copy_element_bytes = bytes;
        continue;
      }
      for (size_t p = 0; p < params_[layer].size(); ++p) {
        if (offsets_[layer][p] == from.offset) params_[layer][p].copy_element_bytes = bytes;
      }
    }
  }

  const std::vector<ParamSize>& Of(size_t layer) const { return params_[layer]; }
  const ParamSize& tied() const { return tied_; }

 private:
  std::vector<std::vector<ParamSize>> params_;  // by layer
  std::vector<std::vector<int64_t>> offsets_;   // of each in its block
  ParamSize tied_;
};

// Reads a staged plan of one stage.
class DraftProfiler {
 public:
  // All outlive it. `copied`: the plan where ranks of cp share pieces of parameters, or
  // `staged`.
  DraftProfiler(const StagedPlan& staged, const StagedPlan& copied, const Machine& machine)
      : staged_(staged),
        copied_(copied),
        machine_(machine),
        costs_{staged.mesh, machine, staged.stages},
        class_(staged.classes.front()),
        chunk_(class_.train.chunks.front()) {}

  DraftProfile Run() {
    made_.profile = ProfileOf(staged_, machine_);
    const size_t layers = made_.profile.layers.size();
    made_.layers.resize(layers);
    made_.mesh = staged_.mesh;
    made_.global_bytes = AlignUp(class_.train.global_bytes);
    gradients_.resize(layers);
    for (const StagedCall& call : chunk_.backward) called_.insert(call.segment);
    for (const StagedCall& call : chunk_.last_backward) AddGradients(call);
    for (const StagedCall& call : class_.train.update) {
      AddUpdate(call);
      AddGradients(call);
    }
    ParamReader params(layers);
    for (const StagedBlock& held : class_.blocks) {
      const ParamBlock& block = staged_.blocks[static_cast<size_t>(held.block)];
      params.Add(staged_, block, PlaceOf(held.layer));
      made_.layers[PlaceOf(held.layer)].gathered_bytes += block.param_bytes;
    }
    for (const StagedCall& call : chunk_.prepare) {
      AddCopies(call);
      params.AddCasts(SegmentOf(call), PlaceOf(call.layer));
    }
    AddCalls(params);
    made_.tied = params.tied();
    return std::move(made_);
  }

 private:
  size_t PlaceOf(int layer) const { return made_.profile.PlaceOf(layer); }
  const Segment& SegmentOf(const StagedCall& call) const {
    return staged_.segments[static_cast<size_t>(call.segment)];
  }

  // Layers of the same segments share what they take.
  void AddCalls(const ParamReader& params) {
    const std::vector<LayerParts> whole = PartsByLayer(staged_, made_.profile);
    const std::vector<LayerParts> copied = PartsByLayer(copied_, made_.profile);
    std::map<std::pair<LayerParts, LayerParts>, std::shared_ptr<const LayerCalls>> known;
    for (size_t l = 0; l < whole.size(); ++l) {
      std::shared_ptr<const LayerCalls>& calls = known[{whole[l], copied[l]}];
      if (calls == nullptr) {
        calls = std::make_shared<const LayerCalls>(
            LayerCalls{OrderOf(staged_, machine_, whole[l]), OrderOf(copied_, machine_, copied[l]),
                       std::move(gradients_[l]), params.Of(l)});
      }
      made_.layers[l].calls = calls;
    }
  }

  // Of a last backward, but for what every backward calls too, or of an update.
  void AddGradients(const StagedCall& call) {
    if (call.layer == kNoLayer || called_.count(call.segment) > 0) return;
    const AxisSet tensor = staged_.mesh.Find("tp").AsSet();
    for (GroupExchange exchange : ExchangesOf(staged_, SegmentOf(call))) {
      exchange.axes &= tensor;
      if (!exchange.axes.empty()) gradients_[PlaceOf(call.layer)].push_back(exchange);
    }
  }

  void AddUpdate(const StagedCall& call) {
    LayerDraft& layer = made_.layers[PlaceOf(call.layer)];
    const auto [ns, ops] = ComputeOf(costs_, SegmentOf(call));
    layer.update_ns = Later(layer.update_ns, ns);
    layer.update_ops += ops;
  }

  void AddCopies(const StagedCall& call) {
    LayerDraft& layer = made_.layers[PlaceOf(call.layer)];
    const auto [ns, ops] = ComputeOf(costs_, SegmentOf(call));
    layer.casts_ns = Later(layer.casts_ns, ns);
    layer.casts += ops;
    layer.gathered_bytes += MoreGathered(SegmentOf(call));
  }

  const StagedPlan& staged_;
  const StagedPlan& copied_;
  const Machine& machine_;
  const CostModel costs_;
  const StagedClass& class_;
  const StagedChunk& chunk_;
  DraftProfile made_;
  std::vector<std::vector<GroupExchange>> gradients_;  // by layer
  std::set<int> called_;                               // segments of every backward
};

}  // namespace

LayerDraft& LayerDraft::operator+=(const LayerDraft& other) {
  calls = nullptr;
  update_ns = Later(update_ns, other.update_ns);
  update_ops += other.update_ops;
  casts_ns = Later(casts_ns, other.casts_ns);
  casts += other.casts;
  gathered_bytes += other.gathered_bytes;
  return *this;
}

namespace {

const LayerOrder& LayerOrderOf(const LayerCalls& calls, const PlanSpread& spread) {
  return spread.shares > 1 && !spread.GathersInTurn() ? calls.copied : calls.whole;
}

}  // namespace

const LayerSteps& ForwardOf(const LayerCalls& calls, const PlanSpread& spread) {
  return LayerOrderOf(calls, spread).forward;
}

const LayerSteps& BackwardOf(const LayerCalls& calls, const PlanSpread& spread) {
  const LayerOrder& order = LayerOrderOf(calls, spread);
  const bool in_turn = spread.shares > 1 && spread.config.zero >= 2;
  return in_turn ? order.backward_in_turn : order.backward;
}

absl::StatusOr<DraftProfile> ProfileForDrafts(ModelCompiler& model, const CompileOptions& options) {
  MGC_ASSIGN_OR_RETURN(const StagedPlan staged, StageModel(model, options));
  if (options.parallel.cp == 1) return DraftProfiler(staged, staged, options.machine).Run();
  CompileOptions with_copies = options;
  with_copies.parallel.zero = 1;
  MGC_ASSIGN_OR_RETURN(const StagedPlan copied, StageModel(model, std::move(with_copies)));
  return DraftProfiler(staged, copied, options.machine).Run();
}

}  // namespace mgc
