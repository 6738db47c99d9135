// A plan that was edited by hand is drawn, predicted, proved and run in the order it has.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/plan/plan_refs.h"
#include "graph/plan/text/plan_text.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/plan/time/predict_step.h"
#include "runtime/run/executor.h"
#include "tests/same_loss/train_cases.h"
#include "tests/verify/damage/mutation_run.h"
#include "tools/views/drawings/timeline.h"
#include "tools/views/schedule.h"

namespace mgc {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kEdited = 1;  // the class whose list is edited

// GPipe on two stages: all forwards, then all backwards.
Plan Compiled() {
  absl::StatusOr<Plan> plan = CompileCase(WithSchedule(GptCase(1, 2, 1), ScheduleKind::kGpipe));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// The last stage runs the first backward before its last forward, as the text says.
Plan Edited() {
  Plan plan = Compiled();
  std::vector<Action>& list = plan.classes[kEdited].train.compute;
  const size_t last = static_cast<size_t>(plan.num_micro_batches) - 1;
  std::swap(list[last], list[last + 1]);
  EXPECT_EQ(list[last].ref.kind, ActionKind::kBackward);
  absl::StatusOr<Plan> read = ParsePlan(PrintPlan(plan), "edited.mgc");
  EXPECT_TRUE(read.ok()) << read.status();
  return *std::move(read);
}

// What the lists of a class say, apart from the update.
Names ActionsOf(const PlanClass& c) {
  Names names;
  for (const Action& action : c.train.compute) {
    if (action.ref.kind != ActionKind::kUpdate) names.push_back(NameOf(action.ref, c.chunks));
  }
  return names;
}
Names TransfersOf(const PlanClass& c) {
  Names names;
  for (const Transfer& transfer : c.train.transfers)
    names.push_back(NameOf(transfer.ref, c.chunks));
  return names;
}

bool IsTransfer(const std::string& name) {
  return absl::StrContains(name, "SEND") || absl::StrContains(name, "RECV");
}

TEST(EditedPlanTest, IsProved) {
  const VerifyReport report = VerifyPlan(Edited());
  EXPECT_TRUE(report.ok()) << report.findings.ToString();
}

TEST(EditedPlanTest, IsPredictedAndDrawnInItsOrder) {
  const Plan plan = Edited();
  const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
  ASSERT_TRUE(step.ok()) << step.status();
  const Timeline timeline = PredictedTimeline(plan, *step, 1);
  for (const PlanClass& c : plan.classes) {
    SCOPED_TRACE(absl::StrCat("class ", c.coordinate));
    Names actions;
    Names transfers;
    std::vector<int64_t> ends(2, 0);
    for (const TimelineEvent& event : timeline.events) {
      if (event.track / 2 != static_cast<size_t>(c.coordinate)) continue;
      EXPECT_LE(ends[event.track % 2], event.begin_ns) << event.name;
      ends[event.track % 2] = event.end_ns;
      if (IsTransfer(event.name)) transfers.push_back(event.name);
      if (event.track % 2 == 0 && !absl::StrContains(event.name, "U"))
        actions.push_back(event.name);
    }
    EXPECT_EQ(actions, ActionsOf(c));
    EXPECT_EQ(transfers, TransfersOf(c));
  }
  Names drawn;
  const ScheduleRows rows = RowsOf(plan);
  for (const ScheduleEntry& entry : rows[kEdited]) drawn.push_back(ToString(entry));
  drawn.erase(std::remove_if(drawn.begin(), drawn.end(), IsTransfer), drawn.end());
  drawn.pop_back();  // the update
  EXPECT_EQ(drawn.size(), ActionsOf(plan.classes[kEdited]).size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_TRUE(absl::StartsWith(ActionsOf(plan.classes[kEdited])[i], drawn[i])) << drawn[i];
  }
}

// The first backward ends earlier than in the plan as compiled, and the step no later.
TEST(EditedPlanTest, ThePredictionIsOfTheEditedOrder) {
  const auto end_of = [](const SimulatedStep& step, const std::string& name) {
    for (const SimulatedSpan& span : step.spans) {
      if (span.name == name) return span.end_ns;
    }
    ADD_FAILURE() << name;
    return int64_t{0};
  };
  const Plan compiled = Compiled();
  const SimulatedStep before = *PredictStep(compiled);
  const SimulatedStep after = *PredictStep(Edited());
  EXPECT_EQ(before.makespan_ns, compiled.predicted_step_ns);
  EXPECT_LT(end_of(after, "1B0"), end_of(before, "1B0"));
  EXPECT_LT(end_of(after, "1B0"), end_of(after, "1F7"));
  EXPECT_EQ(after.busy_ns, before.busy_ns);
}

TEST(EditedPlanTest, RunsInItsOrderToTheSameBits) {
  const Plan plan = Edited();
  const std::vector<KernelEntry> kernels = CpuKernels();
  ExecutorOptions options;
  options.kernels = kernels;
  options.workers = 2;
  options.trace_room = 1 << 16;
  const auto executor = Executor::Create(plan, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  const auto data = TokenDataset::FromBytes(std::string(6000, 'a'), plan.seq_length, "data");
  StepInput input;
  input.data = {&*data, 0, plan.global_batch_size};
  ASSERT_TRUE((*executor)->Run(input).ok());
  for (int64_t rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const AxisId pipeline = PipelineAxis(plan.mesh);
    const PlanClass& c = plan.classes[static_cast<size_t>(plan.mesh.Coordinate(rank, pipeline))];
    Names actions;
    Names transfers;
    for (const TraceEvent& event : (*executor)->Trace(rank)) {
      if (event.kind == TraceKind::kAction) actions.push_back(event.name);
      if (event.kind == TraceKind::kTransfer) transfers.push_back(event.name);
    }
    actions.pop_back();  // the update
    EXPECT_EQ(actions, ActionsOf(c)) << "rank " << rank;
    EXPECT_EQ(transfers, TransfersOf(c)) << "rank " << rank;
  }
  const absl::StatusOr<RunBits> compiled = RunTwoSteps(Compiled(), 2, 1);
  const absl::StatusOr<RunBits> edited = RunTwoSteps(plan, 2, 2);
  ASSERT_TRUE(compiled.ok() && edited.ok()) << compiled.status() << edited.status();
  EXPECT_EQ(Difference(*compiled, *edited), "");
}

// A step that never ends has no prediction; it says why.
TEST(EditedPlanTest, ACircleIsNotPredicted) {
  Plan plan = Compiled();
  std::vector<Transfer>& transfers = plan.classes[kEdited].train.transfers;
  ASSERT_EQ(transfers[1].ref.kind, TransferKind::kRecvForward);
  std::swap(transfers[0], transfers[1]);
  const absl::Status status = PredictStep(plan).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "the step never ends [order_v4]")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "1RECV_F1")) << status;
}

}  // namespace
}  // namespace mgc
