#include "tools/benchmarks/timed_step.h"

#include <algorithm>

#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "graph/plan/step_tables.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr int64_t kFewWords = 257;  // what text of bytes needs

// What an event takes when nothing else runs: a quarter of its times is no longer.
double Undisturbed(std::vector<double> seconds) {
  const auto quarter = seconds.begin() + static_cast<int64_t>(seconds.size() / 4);
  std::nth_element(seconds.begin(), quarter, seconds.end());
  return *quarter;
}

// Calls `fn` for all instructions of one rank's step, in the order of its queue.
void ForEachInstr(const Plan& plan,
                  absl::FunctionRef<void(const Segment& segment, const Instr& instr)> fn) {
  const StepTables tables(plan, false);
  for (const StepAction& action : tables.classes[0].actions) {
    for (const Call& call : *action.calls) {
      const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
      for (const Instr& instr : segment.instrs) fn(segment, instr);
    }
  }
}

}  // namespace

ParallelConfig Copies(int64_t ranks, int64_t sequences, int64_t seq_length, DType type) {
  ParallelConfig config;
  config.world_size = ranks;
  config.micro_batch_size = sequences;
  config.global_batch_size = sequences * ranks;
  config.seq_length = seq_length;
  config.compute_type = type;
  return config;
}

ParallelConfig Group(int64_t ranks, int64_t sequences, int64_t seq_length) {
  ParallelConfig parallel = Copies(1, sequences, seq_length, DType::kF32);
  parallel.world_size = parallel.tp = ranks;
  return parallel;
}

ModelConfig LayersFor(ModelConfig model, int64_t ranks) {
  model.vocab = kFewWords;
  if (model.heads % ranks == 0) return model;
  model.heads = model.kv_heads = ranks;
  model.head_dim = model.hidden / ranks;
  return model;
}

void KeepLastStep(const TrainingSteps& steps, TimedStepSpec* step) {
  const int64_t ranks = step->kind == TraceKind::kInstr ? steps.plan().mesh.world_size() : 1;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    size_t e = 0;
    for (const TraceEvent& event : steps.LastStep(static_cast<int>(rank))) {
      if (event.kind != step->kind) continue;
      if (e == step->seconds.size()) step->seconds.emplace_back();
      const double ns = static_cast<double>(event.end_ns - event.begin_ns);
      step->seconds[e++].push_back(ns / kNsPerSecond);
    }
  }
}

void AddTimes(const Plan& plan, const TimedStepSpec& step, double part,
              std::vector<OpTime>* times) {
  size_t e = 0;
  ForEachInstr(plan, [&](const Segment& segment, const Instr& instr) {
    if (instr.kind != InstrKind::kCompute && instr.kind != InstrKind::kLoad) return;
    MGC_CHECK(e < step.seconds.size()) << "a step with more instructions than it recorded";
    const double seconds = Undisturbed(step.seconds[e++]) * part;
    if (instr.op == nullptr) return;
    times->push_back({instr.op->name, std::string(NameOf(ComputedIn(segment, instr))),
                      FlopsOf(plan.mesh, segment, instr), BytesOf(plan.mesh, segment, instr),
                      seconds});
  });
}

void AddMessages(const Plan& plan, const TimedStepSpec& step,
                 absl::FunctionRef<double(int64_t ranks)> part_of,
                 std::vector<MessageTime>* messages) {
  size_t e = 0;
  ForEachInstr(plan, [&](const Segment& segment, const Instr& instr) {
    if (instr.kind != InstrKind::kStart) return;
    MGC_CHECK(e < step.seconds.size()) << "a step with more collectives than it recorded";
    const InstrCollective collective = CollectiveOf(plan.mesh, plan.stages, segment, instr);
    const int64_t bytes =
        RingWireBytes(collective.kind(), collective.payload_bytes, collective.ranks);
    const double seconds = Undisturbed(step.seconds[e++]) * part_of(collective.ranks);
    messages->push_back({static_cast<double>(bytes), seconds});
  });
}

}  // namespace mgc
