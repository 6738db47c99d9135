// A pipeline that turns back: stages 0, 1 go down the classes, 2, 3 come up again, so that stages 1
// and 2 are neighbours on one class and hand over in place. The compiler builds no such placement;
// every pass behind `stage`, the proof and the runtime take it as they take any other.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/config/check_config.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 5;
// Of each class, by hand: forward and backward of four micro-batches.
constexpr const char* kLists[] = {
    "0F0 0F1 3F0 3B0 0F2 3F1 3B1 0B0 0F3 3F2 3B2 0B1 3F3 3B3 0B2 0B3",
    "1F0 2F0 1F1 2F1 2B0 1B0 1F2 2F2 2B1 1B1 1F3 2F3 2B2 1B2 2B3 1B3",
};

PipelineSchedule HandWritten() {
  PipelineSchedule schedule{2, 2, 4, {}};
  for (const char* list : kLists) {
    schedule.lists.emplace_back();
    for (absl::string_view word : absl::StrSplit(list, ' ')) {
      schedule.lists.back().push_back(
          {word[0] - '0',
           word[1] == 'F' ? ScheduleActionKind::kForward : ScheduleActionKind::kBackward,
           word[2] - '0'});
    }
  }
  return schedule;
}

// Two classes of two chunks, four micro-batches.
TrainCase Case(const TrainCase& family) {
  TrainCase c = WithSchedule(family, ScheduleKind::kInterleaved, 2);
  c.parallel.global_batch_size = 4 * c.parallel.micro_batch_size * c.dp;
  return c;
}

absl::StatusOr<Plan> VShaped(const TrainCase& c) {
  MGC_ASSIGN_OR_RETURN(const CaseModel made, ModelOf(c));
  const ParallelConfig& config = made.options.parallel;
  CheckedConfig checked = CheckConfig(config, made.dims);
  checked.placement.places = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
  PassContext context;
  context.parallel = config;
  context.strategy = made.options.strategy;
  context.placement = std::move(checked.placement);
  context.schedule = {config.schedule, config.pp, checked.vp, checked.micro_batches, 0};
  context.machine = made.options.machine;
  context.model = &made.model;
  PassForm form = StepGraphs{made.model, absl::nullopt, {}};
  for (const PassEntry& pass : CompilePasses()) {
    if (pass.name == "schedule") {
      form = ScheduledPlan{std::get<StagedPlan>(std::move(form)), HandWritten()};
    } else {
      MGC_ASSIGN_OR_RETURN(form, RunPass(pass, std::move(form), context, {}));
    }
  }
  return std::get<Plan>(std::move(form));
}

class VShapeTest : public testing::TestWithParam<TrainCase> {};

TEST_P(VShapeTest, IsCheckedProvedAndRunWithTheNumbersOfTheLoop) {
  const TrainCase c = Case(GetParam());
  absl::StatusOr<Plan> plan = VShaped(c);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(std::string(CheckPlan(*plan).message()), "");
  const VerifyReport report = VerifyPlan(*plan);
  EXPECT_TRUE(report.ok()) << report.findings.ToString();

  // Between classes as many transfers as boundaries: none from stage 1 to 2.
  for (const PlanClass& rank_class : plan->classes) {
    EXPECT_EQ(rank_class.train.transfers.size(), 2 * 2 * 4u) << rank_class.coordinate;
  }
  const std::string text = PrintPlan(*plan);
  EXPECT_THAT(text, HasSubstr("\n  stages (0 0) (1 0) (1 1) (0 1)\n"));
  const absl::StatusOr<Plan> read = ParsePlan(text, "v.mgc");
  ASSERT_TRUE(read.ok()) << read.status();
  const absl::StatusOr<Plan> from_bytes = DeserializePlan(SerializePlan(*plan), "v.plan");
  ASSERT_TRUE(from_bytes.ok()) << from_bytes.status();
  EXPECT_EQ(PrintPlan(*from_bytes), text);

  const absl::StatusOr<TrainResult> loop = TrainCaseFor(c, kSteps);
  ASSERT_TRUE(loop.ok()) << loop.status();
  const absl::StatusOr<TrainResult> turned = TrainPlan(*read, c, kSteps);
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_EQ(turned->losses, loop->losses);
  EXPECT_EQ(turned->grad_norms, loop->grad_norms);
  EXPECT_EQ(turned->gradients, loop->gradients);
  EXPECT_EQ(turned->parameters, loop->parameters);
  EXPECT_EQ(turned->measured_peaks, turned->planned_peaks);
}

INSTANTIATE_TEST_SUITE_P(Families, VShapeTest,
                         testing::Values(GptCase(1, 2, 1),
                                         WithZero(WithSequenceParallel(LlamaCase(2, 2, 1)))),
                         [](const auto& c) { return NameOf(c.param); });

// Of class 1, where stages 1 and 2 are.
Action* Find(Plan* plan, ActionKind kind, int chunk, int64_t micro_batch) {
  for (Action& action : plan->classes[1].train.compute) {
    const ActionRef& ref = action.ref;
    if (ref.kind == kind && ref.chunk == chunk && ref.micro_batch == micro_batch) return &action;
  }
  return nullptr;
}

class DamagedVShapeTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Plan> plan = VShaped(Case(GptCase(1, 2, 1)));
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
  }
  Plan plan_;
};

TEST_F(DamagedVShapeTest, ThatTakesElsewhereIsRefused) {
  Action* taker = Find(&plan_, ActionKind::kForward, 1, 1);
  taker->input = Find(&plan_, ActionKind::kForward, 1, 0)->input;
  EXPECT_THAT(std::string(CheckPlan(plan_).message()), HasSubstr("2F1 takes at "));
  EXPECT_THAT(std::string(CheckPlan(plan_).message()), HasSubstr("what 1F1 leaves at "));
  EXPECT_THAT(std::string(CheckPlan(plan_).message()), HasSubstr("[plan_c20]"));
}

TEST_F(DamagedVShapeTest, ThatTakesTooEarlyIsRefused) {
  std::vector<Action>& list = plan_.classes[1].train.compute;
  std::swap(list[0], list[1]);
  EXPECT_THAT(std::string(CheckPlan(plan_).message()),
              HasSubstr("2F0 comes before 1F0, which hands over to it [plan_c11]"));
}

// Micro-batch 1 is handed over where micro-batch 0 still waits for its backward.
TEST_F(DamagedVShapeTest, ThatOverwritesWhatIsHandedOverIsNotProved) {
  const int64_t address = Find(&plan_, ActionKind::kForward, 0, 0)->output;
  Find(&plan_, ActionKind::kForward, 0, 1)->output = address;
  Find(&plan_, ActionKind::kForward, 1, 1)->input = address;
  Find(&plan_, ActionKind::kBackward, 1, 1)->input = address;
  EXPECT_EQ(std::string(CheckPlan(plan_).message()), "");
  const std::string findings = VerifyPlan(plan_).findings.ToString();
  EXPECT_THAT(findings, HasSubstr("1F1 may write "));
  EXPECT_THAT(findings, HasSubstr("before 2B0 is over, which uses what 1F0 put there"));
  EXPECT_THAT(findings, HasSubstr("order_v6"));
}

}  // namespace
}  // namespace mgc
