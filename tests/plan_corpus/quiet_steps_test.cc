// Steps that a simulation passes at one go (passes/plan/time/quiet_steps.h) beside the same steps
// as an event each, which they are where spans are asked for: every list, slot and time is the
// same.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "passes/plan/order.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

std::string TextOf(const ActionRef& ref) {
  return absl::StrCat(static_cast<int>(ref.kind), ".", ref.chunk, ".", ref.micro_batch);
}
std::string TextOf(const TransferRef& ref) {
  return absl::StrCat(static_cast<int>(ref.kind), ".", ref.chunk, ".", ref.micro_batch);
}

std::string TextOf(const OrderedProgram& program) {
  std::string text;
  for (const OrderedAction& action : program.compute) {
    absl::StrAppend(&text, TextOf(action.ref), " in ", action.input, " out ", action.output,
                    " grad ", action.grad_input, " ", action.grad_output);
    for (const TransferRef& ref : action.waits) absl::StrAppend(&text, " waits ", TextOf(ref));
    absl::StrAppend(&text, "\n");
  }
  for (const OrderedTransfer& transfer : program.transfers) {
    absl::StrAppend(&text, TextOf(transfer.ref), " slot ", transfer.slot, " peer ", transfer.peer,
                    " in ", TextOf(transfer.anchor), " behind ", transfer.issued);
    for (const ActionRef& ref : transfer.after) absl::StrAppend(&text, " after ", TextOf(ref));
    for (const TransferRef& ref : transfer.after_transfers) {
      absl::StrAppend(&text, " after ", TextOf(ref));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

class QuietStepsTest : public testing::TestWithParam<PlanCase> {};

void ExpectSame(const OrderedPlan& at_one_go, const OrderedPlan& step_by_step) {
  EXPECT_EQ(at_one_go.makespan_ns, step_by_step.makespan_ns);
  EXPECT_EQ(at_one_go.predicted_step_ns, step_by_step.predicted_step_ns);
  ASSERT_EQ(at_one_go.classes.size(), step_by_step.classes.size());
  for (size_t c = 0; c < at_one_go.classes.size(); ++c) {
    const OrderedClass& a = at_one_go.classes[c];
    const OrderedClass& b = step_by_step.classes[c];
    EXPECT_EQ(a.pool, b.pool) << "class " << c;
    EXPECT_EQ(a.time.busy_ns, b.time.busy_ns) << "class " << c;
    EXPECT_EQ(a.time.exposed, b.time.exposed) << "class " << c;
    EXPECT_EQ(a.time.transfers_ns, b.time.transfers_ns) << "class " << c;
    ASSERT_EQ(TextOf(a.train), TextOf(b.train)) << "class " << c;
  }
}

TEST_P(QuietStepsTest, AreAsStepByStep) {
  absl::optional<ScheduledPlan> scheduled;
  RunOptions run;
  run.after_pass = [&scheduled](const FinishedPass& pass) {
    const auto* form = std::get_if<ScheduledPlan>(&pass.form);
    if (form != nullptr) scheduled = *form;
    return true;
  };
  CompilePlanCase(GetParam(), std::move(run));
  ASSERT_TRUE(scheduled.has_value());
  for (const Machine& machine : MachinePresets()) {
    SCOPED_TRACE(machine.name);
    const absl::StatusOr<OrderedPlan> at_one_go = Order(*scheduled, machine);
    SimulatedStep spans;
    const absl::StatusOr<OrderedPlan> step_by_step = Order(*scheduled, machine, &spans);
    ASSERT_TRUE(at_one_go.ok()) << at_one_go.status();
    ASSERT_TRUE(step_by_step.ok()) << step_by_step.status();
    ExpectSame(*at_one_go, *step_by_step);
  }
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Tiny, QuietStepsTest, testing::ValuesIn(TinyPlanCases()), kName);
INSTANTIATE_TEST_SUITE_P(Large, QuietStepsTest, testing::ValuesIn(LargePlanCases()), kName);

}  // namespace
}  // namespace mgc
