#include "graph/plan/proto/plan_wire.h"

#include <string>

#include "gmock/gmock.h"
#include "graph/plan/proto/plan_difference.h"
#include "graph/plan/testing/odd_plan.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view bytes) {
  return std::string(DeserializePlan(bytes, "p\n.plan").status().message());
}

TEST(PlanWireTest, EveryFieldReadsBack) {
  const Plan plan = OddPlan();
  const std::string bytes = SerializePlan(plan);
  const absl::StatusOr<Plan> read = DeserializePlan(bytes, "p");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanDifference(plan, *read), "");
  EXPECT_EQ(SerializePlan(*read), bytes);
}

TEST(PlanWireTest, FilesThatAreNotWholeAreRefused) {
  const std::string bytes = SerializePlan(OddPlan());
  EXPECT_EQ(ErrorOf(""), "p\\x0A.plan: not a plan file [file_c1]");
  EXPECT_THAT(ErrorOf("mesh @m []"), HasSubstr("[file_c1]"));
  EXPECT_THAT(ErrorOf(bytes.substr(0, 20)), HasSubstr("cut short in its header [file_c3]"));
  EXPECT_THAT(ErrorOf(bytes.substr(0, bytes.size() - 1)), HasSubstr("[file_c3]"));
  EXPECT_THAT(ErrorOf(bytes + "x"), HasSubstr("[file_c3]"));
  std::string other = bytes;
  other[8] = 1;
  EXPECT_THAT(ErrorOf(other),
              HasSubstr("a plan of version 1; this program reads version 5: compile the model "
                        "again [file_c2]"));
  std::string damaged = bytes;
  damaged[bytes.size() / 2] ^= 1;
  EXPECT_THAT(ErrorOf(damaged), HasSubstr("its checksum does not match [file_c4]"));
}

TEST(PlanWireTest, EveryBitOfTheHeaderCounts) {
  const std::string bytes = SerializePlan(OddPlan());
  for (size_t bit = 0; bit < size_t{40} * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_NE(ErrorOf(damaged), "") << "bit " << bit;
  }
}

TEST(PlanWireTest, AProofChangesTheHeaderOnly) {
  Plan plan = OddPlan();
  ASSERT_EQ(plan.verifier, 1);
  const std::string proved = SerializePlan(plan);
  plan.verifier = 0;
  const std::string bytes = SerializePlan(plan);
  EXPECT_NE(bytes, proved);
  EXPECT_EQ(bytes.substr(40), proved.substr(40));
  const absl::StatusOr<Plan> read = DeserializePlan(bytes, "p");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->verifier, 0);
}

TEST(PlanWireTest, PlansAreChecked) {
  Plan plan = OddPlan();
  plan.classes[0].train.transfers[0].peer = 2;
  EXPECT_THAT(ErrorOf(SerializePlan(plan)),
              HasSubstr("p\\x0A.plan: class 0: 0SEND_F0 has class 2 as its peer [plan_c12]"));
}

}  // namespace
}  // namespace mgc
