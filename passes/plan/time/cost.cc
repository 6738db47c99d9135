#include "passes/plan/time/cost.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"

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

double SlotBytes(const Segment& segment, const Instr& instr) {
  double bytes = 0;
  for (int slot : instr.inputs) bytes += static_cast<double>(segment.slots[slot].bytes);
  for (int slot : instr.outputs) bytes += static_cast<double>(segment.slots[slot].bytes);
  return bytes;
}

// Ranks of a class are alike: the first stands for all.
int64_t FirstRankOf(const Mesh& mesh, int coordinate) {
  const AxisId pipeline = PipelineAxis(mesh);
  int64_t rank = 0;
  while (pipeline >= 0 && mesh.Coordinate(rank, pipeline) != coordinate) ++rank;
  return rank;
}

}  // namespace

double FlopsOf(const Mesh& mesh, const Segment& segment, const Instr& instr) {
  if (instr.op == nullptr || instr.op->flops_per_point == 0) return 0;
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

absl::Status StepOfCenturies(const Machine& machine) {
  return absl::FailedPreconditionError(absl::StrCat(
      "a step takes 73 years or more on machine ", machine.name,
      " [S4]; nearest legal: a smaller micro-batch or global batch size, or more ranks"));
}

int64_t ComputeNs(const CostModel& model, const Segment& segment, const Instr& instr) {
  const Machine& machine = model.machine;
  const double memory = SlotBytes(segment, instr) / machine.BytesPerSecond();
  const double compute = FlopsOf(model.mesh, segment, instr) / machine.FlopsPerSecond("f32");
  return Ns(machine.op_overhead + std::max(memory, compute));
}

int64_t CollectiveNs(const CostModel& model, const Segment& segment, const Instr& instr,
                     int coordinate) {
  const InstrCollective collective = CollectiveOf(model.mesh, segment, instr);
  const NetworkTier& tier = model.machine.TierOf(
      model.mesh.Group(FirstRankOf(model.mesh, coordinate), collective.axes()));
  const int64_t wire_bytes =
      RingWireBytes(collective.kind(), collective.payload_bytes, collective.ranks);
  return Ns(tier.latency * static_cast<double>(collective.ranks - 1) +
            static_cast<double>(wire_bytes) / (tier.bandwidth * tier.efficiency));
}

int64_t TransferNs(const CostModel& model, int from, int to, int64_t bytes) {
  const int64_t ranks[] = {FirstRankOf(model.mesh, from), FirstRankOf(model.mesh, to)};
  const NetworkTier& tier = model.machine.TierOf(ranks);
  return Ns(tier.latency + static_cast<double>(bytes) / (tier.bandwidth * tier.efficiency));
}

std::vector<TimedStep> TimeSegment(const CostModel& model, const Segment& segment, int coordinate) {
  std::vector<TimedStep> steps;
  for (const Instr& instr : segment.instrs) {
    if (instr.kind == InstrKind::kStart) {
      steps.push_back(
          {TimedStep::kStart, CollectiveNs(model, segment, instr, coordinate), instr.collective});
    } else if (instr.kind == InstrKind::kWait) {
      steps.push_back({TimedStep::kWait, 0, instr.collective});
    } else {
      const int64_t ns = ComputeNs(model, segment, instr);
      if (steps.empty() || steps.back().kind != TimedStep::kRun) steps.push_back({});
      steps.back().ns += ns;
    }
  }
  return steps;
}

}  // namespace mgc
