#include "tests/verify/damage/mutation_run.h"

#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/data/data.h"
#include "runtime/run/executor.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 77;

std::string Text() {
  constexpr const char* kWords[] = {"a ", "plan ", "says ", "all ", "that ", "will ", "happen.\n"};
  std::string text;
  uint32_t state = 7;
  while (text.size() < 6000) {
    state = state * 1664525u + 1013904223u;
    text += kWords[(state >> 16) % 7];
  }
  return text;
}

absl::Status Gather(const Executor& executor, TensorRole role, const std::string& prefix,
                    RunBits* bits) {
  MGC_ASSIGN_OR_RETURN(const std::vector<LogicalTensor> tensors, GatherTensors(executor, role));
  for (const LogicalTensor& tensor : tensors) bits->tensors[prefix + tensor.name] = tensor.values;
  return absl::OkStatus();
}

absl::Status Report(const Executor& executor, const std::string& name, bool eval,
                    const std::string& prefix, RunBits* bits) {
  MGC_ASSIGN_OR_RETURN(bits->reports[prefix + name], executor.Report(name, eval));
  return absl::OkStatus();
}

absl::Status TrainStep(Executor* executor, const TokenDataset& data, int step, RunBits* bits) {
  const double t = step + 1;
  const NamedScalar scalars[] = {{"lr", 3e-3 / t},
                                 {"decay", 0.01},
                                 {"beta1", 0.9},
                                 {"beta2", 0.999},
                                 {"eps", 1e-8},
                                 {"correction1", 1 - std::pow(0.9, t)},
                                 {"correction2", 1 - std::pow(0.999, t)},
                                 {"max_norm", 0.5}};
  StepInput input;
  input.data = {&data, step * executor->plan().global_batch_size,
                std::numeric_limits<int64_t>::max()};
  input.scalars = scalars;
  MGC_RETURN_IF_ERROR(executor->Run(input));
  const std::string prefix = absl::StrCat("step ", step, " ");
  for (const char* name : {"loss", "tokens", "grad_norm"}) {
    MGC_RETURN_IF_ERROR(Report(*executor, name, false, prefix, bits));
  }
  return Gather(*executor, TensorRole::kMeanGradient, absl::StrCat(prefix, "gradient "), bits);
}

// The last row is there only to fill the batch.
absl::Status EvaluationStep(Executor* executor, const TokenDataset& data, int step, RunBits* bits) {
  StepInput input;
  input.eval = true;
  input.data = {&data, 0, executor->plan().global_batch_size - 1};
  MGC_RETURN_IF_ERROR(executor->Run(input));
  const std::string prefix = absl::StrCat("evaluation ", step, " ");
  MGC_RETURN_IF_ERROR(Report(*executor, "loss", true, prefix, bits));
  return Report(*executor, "tokens", true, prefix, bits);
}

}  // namespace

absl::StatusOr<RunBits> RunTwoSteps(const Plan& plan, int workers, uint64_t shuffle) {
  MGC_RETURN_IF_ERROR(CheckParameters(plan));
  const std::vector<KernelEntry> kernels = CpuKernels();
  ExecutorOptions options;
  options.kernels = kernels;
  options.workers = workers;
  options.seed = kSeed;
  options.shuffle = shuffle;
  MGC_ASSIGN_OR_RETURN(const TokenDataset data,
                       TokenDataset::FromBytes(Text(), plan.seq_length, "text"));
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::Create(plan, options));
  InitializeParameters(kSeed, *executor);
  RunBits bits;
  for (int step = 0; step < 2; ++step) {
    MGC_RETURN_IF_ERROR(TrainStep(executor.get(), data, step, &bits));
    MGC_RETURN_IF_ERROR(EvaluationStep(executor.get(), data, step, &bits));
  }
  MGC_RETURN_IF_ERROR(Gather(*executor, TensorRole::kParam, "parameter ", &bits));
  return bits;
}

std::string Difference(const RunBits& a, const RunBits& b) {
  if (a.reports.size() != b.reports.size() || a.tensors.size() != b.tensors.size()) {
    return "other tensors";
  }
  for (const auto& [name, value] : a.reports) {
    const auto found = b.reports.find(name);
    if (found == b.reports.end() || !(found->second == value)) return name;
  }
  for (const auto& [name, values] : a.tensors) {
    const auto found = b.tensors.find(name);
    if (found == b.tensors.end() || !(found->second == values)) return name;
  }
  return "";
}

}  // namespace mgc
