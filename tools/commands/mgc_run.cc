// mgc-run: trains the model of a plan.

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/verify/verify.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/plan/time/predict_step.h"
#include "runtime/data/data.h"
#include "runtime/run/executor.h"
#include "runtime/train/metrics.h"
#include "runtime/train/trainer.h"
#include "runtime/train/training_run.h"
#include "tools/cli/check_run.h"
#include "tools/cli/command.h"
#include "tools/cli/measured_timeline.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/proof.h"
#include "tools/cli/run_flags.h"
#include "tools/views/counted.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-run";

CommandText About() {
  return {kCommand,
          "PLAN",
          "train the model of a plan on this machine, all ranks in one process",
          {"mgc-run tiny.plan --data text.txt --steps 20 --lr 1e-3",
           "mgc-run tiny.plan --data text.txt --steps 20 --json --metrics metrics.jsonl",
           "mgc-run tiny.plan --data text.txt --steps 4 --trace timeline.json",
           "mgc-run tiny.plan --check --rank 3",
           "mgc-run tiny.plan --inputs tokens=words.npy --inputs targets=next.npy --steps 2"},
          "A line a step: mean loss before the update, gradient norm before clipping, time, tokens "
          "per\n"
          "second, peak memory of a rank; and a line an evaluation. What is counted instead of "
          "tokens,\n"
          "the model says. As JSON, numbers that are not finite are the strings \"NaN\", "
          "\"Infinity\", \"-Infinity\"."};
}

// The timeline of what was recorded, with the predicted step behind it.
absl::StatusOr<std::string> TraceText(const Executor& executor) {
  Timeline timeline = MeasuredTimeline(executor);
  const Plan& plan = executor.plan();
  MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(plan));
  Append(PredictedTimeline(plan, step, plan.mesh.world_size() + 1), &timeline);
  if (const int64_t dropped = executor.dropped_trace_records(); dropped > 0) {
    PrintNotes({absl::StrCat("the timeline holds the first steps; ", dropped,
                             " later records are left out")});
  }
  return TimelineJson(timeline);
}

absl::Status WriteTrace(const Executor& executor, const std::string& path) {
  MGC_ASSIGN_OR_RETURN(std::string text, TraceText(executor));
  return WriteAll({{path, std::move(text)}});
}

// Reads data from stdin where `path` says so.
absl::Status TakeStdin(const std::string& path, int64_t seq_length,
                       absl::optional<ByteDataset>* data) {
  if (path != "-") return absl::OkStatus();
  MGC_ASSIGN_OR_RETURN(std::string bytes, ReadInput(path));
  MGC_ASSIGN_OR_RETURN(*data, ByteDataset::FromBytes(std::move(bytes), seq_length, "stdin"));
  return absl::OkStatus();
}

int Train(const Plan& plan, const RunFlags& flags) {
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions train = TrainOptionsOf(flags, plan);
  train.kernels = kernels;
  absl::Status input = TakeStdin(train.data_path, plan.seq_length, &train.data);
  input.Update(TakeStdin(train.eval_data_path, plan.seq_length, &train.eval_data));
  if (!input.ok()) return Fail(input, kExitBadModel);
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(plan, std::move(train));
  if (!trainer.ok()) {
    const bool exhausted = absl::IsResourceExhausted(trainer.status());
    return Fail(trainer.status(), exhausted ? kExitFailed : kExitBadModel);
  }
  RunOptions run = RunOptionsOf(flags);
  absl::Status printed;
  const auto print = [&printed](const std::string& line) {
    printed.Update(WriteStdout(absl::StrCat(line, "\n")));
  };
  const std::string counted = CountedUnit(plan.model);
  if (counted != "tokens") {
    PrintNotes({absl::StrCat("losses are means over ", CountedText(plan.model))});
  }
  run.on_step = [&](const StepRecord& r) {
    print(flags.json ? StepJson(r) : StepLine(r, counted));
  };
  run.on_eval = [&](const EvalRecord& r) { print(flags.json ? EvalJson(r) : EvalLine(r)); };
  run.on_note = [](const std::string& note) { PrintNotes({note}); };
  absl::Status status = RunTraining(**trainer, run);
  // After a step that failed the timeline is needed most.
  if (flags.trace) status.Update(WriteTrace((*trainer)->executor(), *flags.trace));
  status.Update(printed);
  return status.ok() ? kExitOk : Fail(status, kExitFailed);
}

int Main(const Words& arguments) {
  Flags parser(About());
  RunFlags flags;
  AddRunFlags(&parser, &flags);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  parsed.errors.Append(CheckRunUsage(flags, parsed));
  const Diagnostics violations = parsed.bad_flags.empty() ? CheckRunFlags(flags) : Diagnostics();
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCommand);
  }
  absl::StatusOr<Plan> plan = ReadPlan(flags.plans[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const Diagnostics scales = CheckLossScaleFlags(flags, *plan);
  if (!scales.empty()) return Refuse(Diagnostics(), scales, kCommand);
  if (flags.check) return CheckRun(*plan, flags, CpuKernels(), kCommand);
  for (const NamedPath& result : ResultsOf(flags)) {
    if (absl::Status status = CheckWritable(result.path); !status.ok()) {
      return Fail(status, kExitFailed);
    }
  }
  const absl::Status fits =
      CheckFits(*plan, {0, plan->mesh.world_size()}, static_cast<int>(flags.workers.value_or(0)));
  if (!fits.ok()) return Fail(fits, kExitFailed);
  if (const int code = EnsureProved(&*plan); code != kExitOk) return code;
  return Train(*plan, flags);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
