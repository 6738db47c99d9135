#include "passes/search/plans/draft_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {
namespace {

Region RegionOf(const Segment& segment, const Slot& slot) {
  return segment.formals[static_cast<size_t>(slot.formal)].region;
}

// A backward as it is where gradients are summed in turn: what it would add to accumulators it
// leaves as it is made.
Segment WithoutAccumulators(Segment segment) {
  std::vector<Instr> instrs;
  instrs.reserve(segment.instrs.size());
  for (Instr& instr : segment.instrs) {
    const bool collects =
        instr.kind == InstrKind::kCompute && !instr.outputs.empty() &&
        RegionOf(segment, segment.slots[static_cast<size_t>(instr.outputs[0])]) == Region::kGrads;
    if (collects) {
      absl::string_view name = instr.op->name;
      const OpDef* op = absl::ConsumeSuffix(&name, "_accumulate") ? FindOp(name) : nullptr;
      if (op == nullptr) continue;  // it adds, and does nothing else
      instr.op = op;
      const std::vector<int>& typed = op->type_operands;
      const bool reads_type = std::find(typed.begin(), typed.end(), 0) != typed.end();
      if (!reads_type) instr.inputs.erase(instr.inputs.begin());
    }
    instrs.push_back(std::move(instr));
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
LayerSteps StepsOf(const StagedPlan& staged, const CostModel& costs,
                   const std::vector<int>& segments, bool in_turn) {
  LayerSteps made;
  for (const int s : segments) {
    const Segment& as_it_is = staged.segments[static_cast<size_t>(s)];
    const Segment segment = in_turn ? WithoutAccumulators(as_it_is) : as_it_is;
    const auto before = static_cast<int>(made.exchanges.size());
    for (TimedStep step : TimeSegment(costs, segment, 0)) {
      step.collective += before;
      made.steps.push_back(step);
    }
    const std::vector<GroupExchange> exchanges = ExchangesOf(staged, segment);
    made.exchanges.insert(made.exchanges.end(), exchanges.begin(), exchanges.end());
  }
  return made;
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
  // All outlive it.
  DraftProfiler(const StagedPlan& staged, const Machine& machine)
      : staged_(staged),
        costs_{staged.mesh, machine, staged.stages},
        class_(staged.classes.front()),
        chunk_(class_.train.chunks.front()),
        params_(0) {}

  DraftProfile Run(ModelProfile profile) {
    made_.profile = std::move(profile);
    const size_t layers = made_.profile.layers.size();
    made_.layers.resize(layers);
    calls_.resize(layers);
    params_ = ParamReader(layers);
    made_.mesh = staged_.mesh;
    made_.global_bytes = AlignUp(class_.train.global_bytes);
    for (const StagedCall& call : chunk_.forward) AddCall(call, &CallsOfLayer::forward);
    for (const StagedCall& call : chunk_.backward) AddCall(call, &CallsOfLayer::backward);
    for (const StagedCall& call : chunk_.last_backward) AddGradients(call);
    for (const StagedCall& call : class_.train.update) {
      AddUpdate(call);
      AddGradients(call);
    }
    for (const StagedBlock& held : class_.blocks) {
      const ParamBlock& block = staged_.blocks[static_cast<size_t>(held.block)];
      params_.Add(staged_, block, PlaceOf(held.layer));
      made_.layers[PlaceOf(held.layer)].gathered_bytes += block.param_bytes;
    }
    for (const StagedCall& call : chunk_.prepare) AddCopies(call);
    AddSteps();
    made_.tied = params_.tied();
    return std::move(made_);
  }

 private:
  struct CallsOfLayer {
    std::vector<int> forward;  // segments
    std::vector<int> backward;
    std::vector<GroupExchange> gradients;
  };

  size_t PlaceOf(int layer) const { return made_.profile.PlaceOf(layer); }
  const Segment& SegmentOf(const StagedCall& call) const {
    return staged_.segments[static_cast<size_t>(call.segment)];
  }

  void AddCall(const StagedCall& call, std::vector<int> CallsOfLayer::*segments) {
    (calls_[PlaceOf(call.layer)].*segments).push_back(call.segment);
    called_.insert(call.segment);
  }

  // Layers of the same segments share what they take.
  void AddSteps() {
    std::map<std::pair<std::vector<int>, std::vector<int>>, std::shared_ptr<const LayerCalls>>
        known;
    for (size_t l = 0; l < calls_.size(); ++l) {
      CallsOfLayer& of = calls_[l];
      std::shared_ptr<const LayerCalls>& calls = known[{of.forward, of.backward}];
      if (calls == nullptr) {
        calls = std::make_shared<const LayerCalls>(LayerCalls{
            StepsOf(staged_, costs_, of.forward, false),
            StepsOf(staged_, costs_, of.backward, false),
            StepsOf(staged_, costs_, of.backward, true), std::move(of.gradients), params_.Of(l)});
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
      if (!exchange.axes.empty()) calls_[PlaceOf(call.layer)].gradients.push_back(exchange);
    }
  }

  void AddUpdate(const StagedCall& call) {
    LayerDraft& layer = made_.layers[PlaceOf(call.layer)];
    const auto [ns, ops] = ComputeOf(costs_, SegmentOf(call));
    layer.update_ns = Later(layer.update_ns, ns);
    layer.update_ops += ops;
  }

  void AddCopies(const StagedCall& call) {
    const Segment& segment = SegmentOf(call);
    LayerDraft& layer = made_.layers[PlaceOf(call.layer)];
    const auto [ns, ops] = ComputeOf(costs_, segment);
    layer.casts_ns = Later(layer.casts_ns, ns);
    layer.casts += ops;
    layer.gathered_bytes += MoreGathered(segment);
    params_.AddCasts(segment, PlaceOf(call.layer));
  }

  const StagedPlan& staged_;
  const CostModel costs_;
  const StagedClass& class_;
  const StagedChunk& chunk_;
  DraftProfile made_;
  std::vector<CallsOfLayer> calls_;  // by layer
  std::set<int> called_;             // segments of every forward and backward
  ParamReader params_;
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

absl::StatusOr<DraftProfile> ProfileForDrafts(ModelCompiler& model, const CompileOptions& options) {
  MGC_ASSIGN_OR_RETURN(const StagedPlan staged, StageModel(model, options));
  return DraftProfiler(staged, options.machine).Run(ProfileOf(staged, options.machine));
}

}  // namespace mgc
