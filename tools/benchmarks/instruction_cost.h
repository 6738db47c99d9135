// What an instruction costs beyond its kernel: steps of a plan whose kernels do nothing.

#ifndef MGC_TOOLS_BENCHMARKS_INSTRUCTION_COST_H_
#define MGC_TOOLS_BENCHMARKS_INSTRUCTION_COST_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "passes/config/parallel_config.h"
#include "runtime/data/data.h"
#include "runtime/run/executor.h"

namespace mgc {

// Steps of `gpt2-tiny` on samples of eight tokens, so that what is real in them beside the
// instructions (sums of a few kilobytes, samples, zeroing) is little.
class EmptySteps {
 public:
  // `parallel` says ranks and micro-batches; it gets that sequence length. Errors of the compiler
  // and of Executor::Create.
  static absl::StatusOr<std::unique_ptr<EmptySteps>> Create(ParallelConfig parallel, int workers);
  EmptySteps(const EmptySteps&) = delete;
  EmptySteps& operator=(const EmptySteps&) = delete;

  // Nanoseconds of the next step on each thread that runs it, divided by its instructions. Errors
  // of Executor::Run.
  absl::StatusOr<double> Step();

  // Of a step, on all ranks together: kernels, loads of data, starts of collectives, waits.
  int64_t instructions() const { return instructions_; }

 private:
  EmptySteps(Plan plan, TokenDataset data);

  const Plan plan_;
  const TokenDataset data_;
  std::unique_ptr<Executor> executor_;
  int64_t instructions_ = 0;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_INSTRUCTION_COST_H_
