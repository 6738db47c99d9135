// Training steps whose instructions and collectives are timed, and what these had to do.

#ifndef MGC_TOOLS_BENCHMARKS_TIMED_STEP_H_
#define MGC_TOOLS_BENCHMARKS_TIMED_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "frontends/model_config.h"
#include "graph/plan/plan.h"
#include "graph/types/tensor_type.h"
#include "passes/config/parallel_config.h"
#include "runtime/run/trace.h"
#include "tools/benchmarks/training.h"

namespace mgc {

// An instruction, what its kernel had to do, and how long it took.
struct OpTime {
  std::string op;
  std::string dtype;  // in which it computes
  double flops = 0;
  double bytes = 0;
  double seconds = 0;  // of one device; of a core, while all work
};

// What one rank sent in a collective, and how long it took; on cores that ranks share, how long it
// kept one core for each of its ranks.
struct MessageTime {
  double bytes = 0;
  double seconds = 0;
};

// A step that is timed again and again.
struct TimedStepSpec {
  ModelConfig model;
  ParallelConfig parallel;
  TraceKind kind = TraceKind::kInstr;
  std::vector<std::vector<double>> seconds = {};  // by event of that kind, in a rank's order
};

// Copies of a model beside each other, one micro-batch each.
ParallelConfig Copies(int64_t ranks, int64_t sequences, int64_t seq_length, DType type);
// Ranks that share a model's layers, in f32.
ParallelConfig Group(int64_t ranks, int64_t sequences, int64_t seq_length);
// The same layers with heads that so many ranks can share, below a head that takes little time.
ModelConfig LayersFor(ModelConfig model, int64_t ranks);

// Takes the times of the step that has run last: those of all ranks, but of a collective, which is
// one event of all its ranks, those of one.
void KeepLastStep(const TrainingSteps& steps, TimedStepSpec* step);

// Of the instructions of one rank, whose queue does them in order; what they took counts `part`
// times.
void AddTimes(const Plan& plan, const TimedStepSpec& step, double part, std::vector<OpTime>* times);
// The same of one rank's collectives; `part_of` is asked how many times one of so many ranks
// counts.
void AddMessages(const Plan& plan, const TimedStepSpec& step,
                 absl::FunctionRef<double(int64_t ranks)> part_of,
                 std::vector<MessageTime>* messages);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_TIMED_STEP_H_
