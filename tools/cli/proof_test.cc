#include "tools/cli/proof.h"

#include <string>

#include "absl/status/statusor.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/verify/edit_plan.h"
#include "tools/cli/flags.h"

namespace mgc {
namespace {

// A plan as a file keeps it: with the hash of what `verifier` proved.
Plan Kept(Plan plan, int verifier) {
  plan.verifier = verifier;
  const absl::StatusOr<Plan> read = DeserializePlan(SerializePlan(plan), "test");
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : Plan();
}

// What version 2 had not seen.
Plan Damaged() {
  Plan plan = CompileTiny("one_rank");
  plan.vocab = 100000;
  return plan;
}

TEST(ProofTest, AnOlderProofIsNotBelieved) {
  Plan plan = Kept(Damaged(), kVerifierVersion - 1);
  EXPECT_EQ(plan.verifier, kVerifierVersion - 1);
  EXPECT_EQ(EnsureProved(&plan), kExitMismatch);
}

TEST(ProofTest, AnOlderProofOfASoundPlanIsMadeAgain) {
  Plan plan = Kept(CompileTiny("one_rank"), kVerifierVersion - 1);
  EXPECT_EQ(EnsureProved(&plan), kExitOk);
  EXPECT_EQ(plan.verifier, kVerifierVersion);
}

TEST(ProofTest, ItsOwnProofIsBelieved) {
  Plan plan = Kept(Damaged(), kVerifierVersion);
  EXPECT_EQ(EnsureProved(&plan), kExitOk);
}

}  // namespace
}  // namespace mgc
