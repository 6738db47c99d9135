#include "tools/benchmarks/instruction_cost.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "frontends/model_config.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/step_tables.h"
#include "kernels/kernel.h"
#include "runtime/run/trace.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

constexpr int64_t kSequence = 8;

class Nothing : public Kernel {
 public:
  absl::Status Run(const KernelRun& /*run*/, Parallel& /*parallel*/) const override {
    return absl::OkStatus();
  }
};

std::vector<KernelEntry> KernelsThatDoNothing() {
  std::vector<KernelEntry> entries;
  for (const OpDef& op : AllOps()) {
    entries.push_back(
        {op.name.c_str(), [](const KernelSpec&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
           return std::make_unique<Nothing>();
         }});
  }
  return entries;
}

int64_t InstructionsOf(const Plan& plan) {
  const StepTables tables(plan, /*eval=*/false);
  int64_t instructions = 0;
  for (const StepClass& step : tables.classes) {
    int64_t of_a_rank = 0;
    for (const StepAction& action : step.actions) {
      for (const Call& call : *action.calls) {
        const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
        of_a_rank += static_cast<int64_t>(segment.instrs.size());
      }
    }
    instructions += of_a_rank;
  }
  const int64_t classes = static_cast<int64_t>(tables.classes.size());
  return instructions * (plan.mesh.world_size() / classes);
}

}  // namespace

EmptySteps::EmptySteps(Plan plan, TokenDataset data)
    : plan_(std::move(plan)), data_(std::move(data)), instructions_(InstructionsOf(plan_)) {}

absl::StatusOr<std::unique_ptr<EmptySteps>> EmptySteps::Create(ParallelConfig parallel,
                                                               int workers) {
  parallel.seq_length = kSequence;
  MGC_ASSIGN_OR_RETURN(const ModelConfig model, LoadModelPreset("gpt2-tiny"));
  MGC_ASSIGN_OR_RETURN(Plan plan, CompileModel(model, parallel));
  MGC_ASSIGN_OR_RETURN(TokenDataset data,
                       TokenDataset::FromBytes(std::string(1 << 12, 'a'), kSequence, "letters"));
  std::unique_ptr<EmptySteps> steps(new EmptySteps(std::move(plan), std::move(data)));
  const std::vector<KernelEntry> kernels = KernelsThatDoNothing();
  ExecutorOptions options;
  options.kernels = kernels;
  options.workers = workers;
  MGC_ASSIGN_OR_RETURN(steps->executor_, Executor::Create(steps->plan_, options));
  return steps;
}

absl::StatusOr<double> EmptySteps::Step() {
  StepInput input;
  input.data = {&data_, 0, data_.samples_per_epoch()};
  const int64_t begin = NowNs();
  MGC_RETURN_IF_ERROR(executor_->Run(input));
  const double elapsed = static_cast<double>(NowNs() - begin);
  const int64_t threads = std::min<int64_t>(executor_->num_workers(), plan_.mesh.world_size());
  return elapsed * static_cast<double>(threads) / static_cast<double>(instructions_);
}

}  // namespace mgc
