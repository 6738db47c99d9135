// A plan that says the order it has in other words, which the shortened step of the proof must not
// take for another order.

#include <cstdint>
#include <string>

#include "graph/plan/plan_refs.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/verify/damage/mutation_run.h"

namespace mgc {
namespace {

// 1F1B on two stages of two ranks, eight micro-batches.
Plan Compiled() {
  absl::StatusOr<Plan> plan = CompileCase(GptCase(2, 2, 1));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// The receive of gradient 1 is listed behind the send of activation 2, which is anchored at the
// last collectives of backward 0: there the receive stands, whatever its own anchor. It keeps
// waiting for that backward, whose room it takes. The proof of the meaning leaves micro-batch 2
// out; without its place the receive would stand at its own anchor, in front of collectives that
// must be over before it may run.
Plan Reordered() {
  Plan plan = Compiled();
  Program& program = plan.classes[0].train;
  for (size_t t = 1; t < program.transfers.size(); ++t) {
    Transfer& transfer = program.transfers[t];
    const Transfer& before = program.transfers[t - 1];
    if (transfer.ref.kind != TransferKind::kRecvBackward || transfer.ref.micro_batch != 1) continue;
    EXPECT_EQ(before.ref.kind, TransferKind::kSendForward);
    EXPECT_EQ(before.ref.micro_batch, 2);
    EXPECT_FALSE(transfer.after.empty() && transfer.after_transfers.empty());
    transfer.anchor = program.compute[0].ref;
    transfer.issued = 0;
    return plan;
  }
  ADD_FAILURE() << "no receive of gradient 1";
  return plan;
}

TEST(ReorderedPlanTest, IsProvedInFull) {
  const Plan plan = Reordered();
  EXPECT_GT(plan.num_micro_batches, 3);
  const VerifyReport report = VerifyPlan(plan);
  EXPECT_EQ(report.findings.ToString(), "");
  EXPECT_EQ(report.runs, 4);
}

TEST(ReorderedPlanTest, RunsToTheSameBits) {
  const absl::StatusOr<RunBits> compiled = RunTwoSteps(Compiled(), 4, 1);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (const int workers : {1, 2, 4}) {
    const absl::StatusOr<RunBits> reordered =
        RunTwoSteps(Reordered(), workers, static_cast<uint64_t>(workers));
    ASSERT_TRUE(reordered.ok()) << reordered.status();
    EXPECT_EQ(Difference(*compiled, *reordered), "") << workers << " workers";
  }
}

}  // namespace
}  // namespace mgc
