#include "passes/plan/time/cost.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "graph/plan/local_use.h"
#include "passes/plan/time/ring_time.h"

namespace mgc {
namespace {

constexpr double kNsPerSecond = 1e9;

int64_t Ns(double seconds) {
  return std::llround(std::min(seconds * kNsPerSecond, static_cast<double>(kMaxNs)));
}

// The rule of an instruction, bound to its slots' logical types.
FactorRule RuleOfInstr(const Segment& segment, const Instr& instr) {
  std::vector<const TensorType*> operands;
  std::vector<const TensorType*> results;
  for (int slot : instr.inputs) operands.push_back(&segment.slots[slot].type);
  for (int slot : instr.outputs) results.push_back(&segment.slots[slot].type);
  absl::StatusOr<FactorRule> rule = RuleOf(*instr.op, {instr.attrs, operands, results});
  MGC_CHECK(rule.ok()) << instr.op->name << ": " << rule.status().ToString();
  return *std::move(rule);
}

// Of an instruction that moves what it names: operands of which only the type counts apart.
double SlotBytes(const Segment& segment, const Instr& instr) {
  double bytes = 0;
  const auto only_type = [&](size_t operand) {
    if (instr.op == nullptr) return false;
    const std::vector<int>& typed = instr.op->type_operands;
    return std::find(typed.begin(), typed.end(), static_cast<int>(operand)) != typed.end();
  };
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    if (!only_type(i)) bytes += static_cast<double>(segment.slots[instr.inputs[i]].bytes);
  }
  for (int slot : instr.outputs) bytes += static_cast<double>(segment.slots[slot].bytes);
  return bytes;
}

// The rank of a class whose other coordinates are 0; of the whole mesh without a pipeline.
int64_t FirstRankOf(const Mesh& mesh, int coordinate) {
  const AxisId pipeline = PipelineAxis(mesh);
  return pipeline < 0 ? 0 : coordinate * mesh.stride(pipeline);
}

// Of each group over `axes` in a class the first rank.
std::vector<int64_t> FirstRanksOfGroups(const Mesh& mesh, AxisSet axes, int coordinate) {
  const AxisId pipeline = PipelineAxis(mesh);
  const bool within = pipeline < 0 || !axes.Contains(pipeline);
  std::vector<int64_t> firsts = {within ? FirstRankOf(mesh, coordinate) : 0};
  for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
    if (axis == pipeline || axes.Contains(axis)) continue;
    const size_t count = firsts.size();
    for (int64_t at = 1; at < mesh.size(axis); ++at) {
      for (size_t i = 0; i < count; ++i) firsts.push_back(firsts[i] + at * mesh.stride(axis));
    }
  }
  return firsts;
}

// The ranks of the group whose first is rank 0: along `axes`, or along pp those of some classes.
std::vector<int64_t> GroupOfRankZero(const Mesh& mesh, const InstrCollective& collective) {
  if (collective.classes.empty()) return mesh.Group(0, collective.axes());
  const int64_t stride = mesh.stride(PipelineAxis(mesh));
  std::vector<int64_t> ranks;
  ranks.reserve(collective.classes.size());
  for (int rank_class : collective.classes) ranks.push_back(rank_class * stride);
  return ranks;
}

// Ranks so far apart lie alike in the domains of a machine.
int64_t PeriodOf(const Machine& machine) {
  int64_t period = 1;
  for (const NetworkTier& tier : machine.tiers) period = std::max(period, tier.ranks);
  return period;
}

// Of those first ranks one for each way in which a group can lie in the domains of a machine.
std::vector<int64_t> DifferentPlaces(std::vector<int64_t> firsts, const Machine& machine) {
  const int64_t period = PeriodOf(machine);
  for (int64_t& first : firsts) first %= period;
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  return firsts;
}

}  // namespace

double FlopsOf(const Mesh& mesh, const Segment& segment, const Instr& instr) {
  if (instr.op == nullptr) return 0;
  if (instr.op->flops) return instr.op->flops(LocalUse(segment, instr, mesh).use());
  if (instr.op->flops_per_point == 0) return 0;
  const FactorRule rule = RuleOfInstr(segment, instr);
  double points = 1;
  for (const Factor& factor : rule.factors) points *= static_cast<double>(factor.size);
  // Every axis that cuts an operand or result cuts the work.
  AxisSet axes;
  for (int slot : instr.inputs) axes |= segment.slots[slot].sharding.SplitAxes();
  for (int slot : instr.outputs) axes |= segment.slots[slot].sharding.SplitAxes();
  for (int slot : instr.outputs) axes |= segment.slots[slot].sharding.storage.AsSet();
  return points * instr.op->flops_per_point / static_cast<double>(mesh.Size(axes));
}

DType ComputedIn(const Segment& segment, const Instr& instr) {
  const auto is_beside = [&](size_t operand) {
    return instr.op != nullptr &&
           (IsWideOperand(*instr.op, operand) || IsQuantizedOperand(*instr.op, operand));
  };
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    const DType dtype = segment.slots[instr.inputs[i]].type.dtype;
    if (dtype != DType::kI64 && !is_beside(i)) return dtype;
  }
  for (int slot : instr.outputs) {
    const DType dtype = segment.slots[slot].type.dtype;
    if (dtype != DType::kI64) return dtype;
  }
  return DType::kF32;
}

double BytesOf(const Mesh& mesh, const Segment& segment, const Instr& instr) {
  if (instr.op == nullptr || !instr.op->bytes) return SlotBytes(segment, instr);
  return instr.op->bytes(LocalUse(segment, instr, mesh).use());
}

absl::Status StepOfCenturies(const Machine& machine) {
  return absl::FailedPreconditionError(absl::StrCat(
      "a step takes 73 years or more on machine ", machine.name,
      " [S4]; nearest legal: a smaller micro-batch or global batch size, or more ranks"));
}

int64_t ComputeNs(const CostModel& model, const Segment& segment, const Instr& instr) {
  const Machine& machine = model.machine;
  const absl::string_view dtype = NameOf(ComputedIn(segment, instr));
  const double memory = BytesOf(model.mesh, segment, instr) / machine.BytesPerSecond();
  const double flops = FlopsOf(model.mesh, segment, instr);
  const double compute = flops / machine.RateOf(dtype).At(flops);
  const double factor = instr.op == nullptr ? 1 : machine.FactorOf(instr.op->name, dtype);
  return Ns(machine.op_overhead + factor * std::max(memory, compute));
}

int64_t PlaceOfClass(const CostModel& model, int coordinate) {
  return FirstRankOf(model.mesh, coordinate) % PeriodOf(model.machine);
}

namespace {

// Of groups that lie as that of rank 0 does.
int64_t SlowestNs(const CostModel& model, const std::vector<int64_t>& ranks,
                  const GroupExchange& exchange, int coordinate) {
  const std::vector<int64_t> firsts = FirstRanksOfGroups(model.mesh, exchange.axes, coordinate);
  double slowest = 0;
  for (int64_t first : DifferentPlaces(firsts, model.machine)) {
    std::vector<int64_t> group = ranks;
    for (int64_t& rank : group) rank += first;
    slowest = std::max(
        slowest, CollectiveSeconds(model.machine, group, exchange.kind, exchange.payload_bytes));
  }
  return Ns(slowest);
}

int64_t CollectiveNs(const CostModel& model, const InstrCollective& collective, int coordinate) {
  return SlowestNs(model, GroupOfRankZero(model.mesh, collective),
                   {collective.axes(), collective.kind(), collective.payload_bytes}, coordinate);
}

}  // namespace

int64_t CollectiveNs(const CostModel& model, const Segment& segment, const Instr& instr,
                     int coordinate) {
  return CollectiveNs(model, CollectiveOf(model.mesh, model.stages, segment, instr), coordinate);
}

int64_t CollectiveNs(const CostModel& model, const GroupExchange& exchange, int coordinate) {
  return SlowestNs(model, model.mesh.Group(0, exchange.axes), exchange, coordinate);
}

const NetworkTier& TransferTier(const CostModel& model, int from, int to) {
  const int64_t distance = FirstRankOf(model.mesh, to) - FirstRankOf(model.mesh, from);
  const NetworkTier* outermost = &model.machine.tiers.front();
  for (int64_t first : FirstRanksOfGroups(model.mesh, {}, from)) {
    const int64_t ends[] = {first, first + distance};
    outermost = std::max(outermost, &model.machine.TierOf(ends));
    if (outermost == &model.machine.tiers.back()) break;
  }
  return *outermost;
}

int64_t TransferNs(const NetworkTier& tier, int64_t bytes) {
  return Ns(MessageSeconds(tier, bytes));
}

int64_t TransferNs(const CostModel& model, int from, int to, int64_t bytes) {
  return TransferNs(TransferTier(model, from, to), bytes);
}

std::vector<TimedStep> TimeSegment(const CostModel& model, const Segment& segment, int coordinate) {
  std::vector<TimedStep> steps;
  const std::vector<bool> waited_for = WaitedFor(segment);
  std::vector<AxisSet> axes(waited_for.size());
  for (const Instr& instr : segment.instrs) {
    if (instr.kind == InstrKind::kStart) {
      const auto place = static_cast<size_t>(instr.collective);
      const InstrCollective collective = CollectiveOf(model.mesh, model.stages, segment, instr);
      axes[place] = collective.axes();
      steps.push_back({TimedStep::kStart, CollectiveNs(model, collective, coordinate),
                       instr.collective, !waited_for[place], axes[place]});
    } else if (instr.kind == InstrKind::kWait) {
      steps.push_back({TimedStep::kWait, 0, instr.collective, false,
                       axes[static_cast<size_t>(instr.collective)]});
    } else {
      const int64_t ns = ComputeNs(model, segment, instr);
      if (steps.empty() || steps.back().kind != TimedStep::kRun) steps.push_back({});
      steps.back().ns = Later(steps.back().ns, ns);
    }
  }
  return steps;
}

}  // namespace mgc
