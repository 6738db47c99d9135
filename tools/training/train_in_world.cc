#include "tools/training/train_in_world.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/plan/time/predict_step.h"
#include "runtime/metrics/metrics.h"
#include "runtime/run/executor.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/train/training_run.h"
#include "runtime/weights/import_weights.h"
#include "tools/cli/command.h"
#include "tools/cli/gzip.h"
#include "tools/cli/measured_timeline.h"
#include "tools/cli/output.h"
#include "tools/cli/run_progress.h"
#include "tools/launch/launcher.h"
#include "tools/views/counted.h"

namespace mgc {
namespace {

// What has been recorded until a run ended as `ended` says: in all processes, which the first one
// writes; of one that has failed by itself here, since the others wait for it where it left them.
absl::Status WriteTrace(const Executor& executor, int64_t clock_ahead_ns, const std::string& path,
                        const absl::Status& ended) {
  const bool several = executor.team().size() > 1;
  if (several && absl::IsAborted(ended)) return absl::OkStatus();  // another one has failed
  const bool together = ended.ok() || IsAlike(ended);
  Timeline timeline;
  if (together) {
    MGC_ASSIGN_OR_RETURN(timeline, MeasuredTimeline(executor, clock_ahead_ns));
    if (!executor.team().is_lead()) return absl::OkStatus();
  } else {
    timeline = MeasuredHere(executor);
  }
  const Plan& plan = executor.plan();
  MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(plan));
  Append(PredictedTimeline(plan, step, plan.mesh.world_size() + 1), &timeline);
  if (const int64_t dropped = executor.dropped_trace_records(); dropped > 0) {
    PrintNotes({absl::StrCat("the timeline holds the first records; ", dropped,
                             " later records are left out")});
  }
  MGC_ASSIGN_OR_RETURN(std::string content, AsNamed(path, TimelineJson(timeline)));
  return WriteAll({{path, std::move(content)}});
}

TrainOptions OptionsIn(const World& world, const RunBasis& basis) {
  TrainOptions train = basis.train;
  train.process = world.place();
  train.progress = world.progress();
  if (train.workers == 0) train.workers = world.workers;
  train.simd_level = world.simd_level.value_or(train.simd_level);
  if (basis.injection.has_value()) train.probe = ProbeOf(*basis.injection);
  return train;
}

TrainingRunOptions RunOptionsIn(const World& world, const RunBasis& basis, RunProgress* progress,
                                absl::Status* printed) {
  TrainingRunOptions run = RunOptionsOf(basis.flags);
  const auto print = [=](const std::string& line) {
    progress->Clear();
    printed->Update(WriteStdout(absl::StrCat(line, "\n")));
    progress->Show();
  };
  const bool json = basis.flags.json;
  const std::string counted = CountedUnit(basis.plan.model);
  run.perplexity = counted == "tokens";
  ReportOptions& reports = run.reports;
  reports.on_step = [=](const StepRecord& r) {
    progress->Take(r.step, r.warm_up);
    print(json ? StepJson(r) : StepLine(r, counted));
  };
  reports.on_eval = [=](const EvalRecord& r) { print(json ? EvalJson(r) : EvalLine(r)); };
  reports.on_note = [progress](const std::string& note) {
    progress->Clear();
    PrintNotes({note});
    progress->Show();
  };
  run.stop_asked = [&world] { return world.board->stops_asked() > 0; };
  return run;
}

// Whether there is a checkpoint that the run goes on from.
bool GoesOn(const RunFlags& flags) {
  if (!RunOptionsOf(flags).checkpoints.resume || !flags.save) return false;
  const absl::StatusOr<std::vector<int64_t>> steps = ListSteps(*flags.save);
  return !steps.ok() || !steps->empty();  // an error is the resuming's to tell
}

// Puts the weights to begin with where random ones are, unless a checkpoint comes there.
absl::Status BeginWith(const ModelFiles& files, const RunFlags& flags, Executor& executor) {
  Team& team = executor.team();
  const std::string dir = EscapeBytes(files.dir());
  MGC_ASSIGN_OR_RETURN(const std::string goes_on,
                       team.TakeFromLead(team.is_lead() && GoesOn(flags) ? "yes" : ""));
  std::string note = absl::StrCat("a checkpoint is there: the weights of ", dir, " are not read");
  if (goes_on.empty()) {
    const int64_t begin = NowNs();
    MGC_ASSIGN_OR_RETURN(const int64_t bytes, ImportWeights(files, executor));
    note = absl::StrFormat("begins with the weights of %s: %s read in %.0f ms", dir,
                           BytesText(bytes), static_cast<double>(NowNs() - begin) / 1e6);
  }
  if (team.is_lead()) PrintNotes({note});
  return absl::OkStatus();
}

}  // namespace

int TrainInWorld(World& world, const RunBasis& basis) {
  const bool injected =
      basis.injection.has_value() && world.ranks().Contains(basis.injection->rank);
  if (injected) InjectOutside(*basis.injection, FaultPoint::kStart);
  absl::StatusOr<std::unique_ptr<Trainer>> trainer =
      Trainer::Create(basis.plan, OptionsIn(world, basis));
  if (!trainer.ok()) {
    const bool failed =
        absl::IsResourceExhausted(trainer.status()) || absl::IsAborted(trainer.status());
    return EndRun(world, trainer.status(), failed ? kExitFailed : kExitBadModel);
  }
  world.board->SetStage(world.self, ProcessStage::kRunning, NowNs());
  (*trainer)->executor().team().Observe([&world](bool waits) {
    world.board->SetStage(world.self, waits ? ProcessStage::kAgreeing : ProcessStage::kRunning,
                          NowNs());
  });
  Executor& executor = (*trainer)->executor();
  if (world.on_open && executor.communicator() != nullptr) world.on_open(*executor.communicator());
  const absl::Cleanup close = [&world] {  // before the communicator is gone, whatever is thrown
    if (world.on_close) world.on_close();
  };
  absl::Status printed;
  RunProgress progress(basis.flags.steps.value_or(1));
  absl::StatusOr<int64_t> clock_ahead = 0;
  if (basis.flags.trace) clock_ahead = executor.team().ClockAhead(NowNs);
  absl::Status status = clock_ahead.status();
  if (status.ok() && basis.init != nullptr) {
    status = BeginWith(*basis.init, basis.flags, executor);
  }
  if (status.ok()) status = RunTraining(**trainer, RunOptionsIn(world, basis, &progress, &printed));
  progress.Clear();
  if (injected) InjectOutside(*basis.injection, FaultPoint::kEnd);
  // After a step that failed the timeline is needed most.
  if (basis.flags.trace && clock_ahead.ok()) {
    status.Update(WriteTrace(executor, *clock_ahead, *basis.flags.trace, status));
  }
  status.Update(printed);
  // Nobody leaves before all have what they need of each other.
  if (status.ok()) status = executor.team().Agree(status);
  if (status.ok()) return kExitOk;
  const bool stopped = absl::IsCancelled(status) && basis.flags.save.has_value();
  return EndRun(world, status, stopped ? kExitStopped : kExitFailed);
}

}  // namespace mgc
