#include "runtime/state/parameters.h"

#include "gtest/gtest.h"
#include "runtime/run/testing/chain_plan.h"

namespace mgc {
namespace {

Plan MakePlan() {
  ChainOptions options;
  options.dp = 2;
  return ChainPlan(options);
}

TEST(ParametersTest, OfASoundPlanFit) {
  EXPECT_TRUE(CheckParameters(MakePlan()).ok()) << CheckParameters(MakePlan());
}

TEST(ParametersTest, TooManyElementsAreNamedWithTheLimit) {
  Plan plan = MakePlan();
  ParamEntry& entry = plan.blocks[0].entries[0];
  entry.type = {DType::kF32, {{int64_t{1} << 41, ""}}};
  entry.sharding = entry.state_sharding = Sharding::Whole(1);
  const absl::Status status = CheckParameters(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "layers.0.w: has up to 2.19902e+12 elements with its padding, 8.0 TiB; a "
            "run holds at most 1e+12, 3.6 TiB");
}

TEST(ParametersTest, StatesThatNoCheckpointHoldsAreRefused) {
  Plan plan = MakePlan();
  plan.blocks[0].entries[0].states = {{"m", 0}, {"slow", 64}};
  const absl::Status status = CheckParameters(plan);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(status.message(),
            "layers.0.w: keeps a state `slow`, of which checkpoints have no file");
}

}  // namespace
}  // namespace mgc
