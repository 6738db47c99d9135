#include "runtime/train/loss_scale.h"

#include <limits>

#include "graph/ir/step_names.h"
#include "gtest/gtest.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/reference_kernels.h"

namespace mgc {
namespace {

double ScalarNamed(const LossScaleOptions& options, absl::string_view name) {
  for (const NamedScalar& scalar : ScalarsOf(options)) {
    if (scalar.name == name) return scalar.value;
  }
  return -1;
}

TEST(LossScaleTest, DefaultsAreMegatrons) {
  const LossScaleOptions options;
  EXPECT_EQ(options.initial, 4294967296.0);
  EXPECT_EQ(ScalarNamed(options, kMinScaleScalar), 1);
  EXPECT_EQ(ScalarNamed(options, kScaleWindowScalar), 1000);
  EXPECT_EQ(ScalarNamed(options, kHysteresisScalar), 2);
  EXPECT_TRUE(CheckLossScale(options).empty());
}

TEST(LossScaleTest, AFixedOneHasNowhereToGo) {
  LossScaleOptions options;
  options.fixed = 128;
  EXPECT_EQ(ScalarNamed(options, kMinScaleScalar), 128);
  EXPECT_EQ(ScalarNamed(options, kScaleWindowScalar), std::numeric_limits<double>::infinity());
}

TEST(LossScaleTest, AllThatIsWrongAtOnce) {
  LossScaleOptions options;
  options.initial = 0.5;
  options.window = 0;
  options.hysteresis = -1;
  EXPECT_EQ(CheckLossScale(options).ToString(),
            "the first loss scale 0.5 is below the least, 1\n"
            "the loss scale cannot grow after 0 steps\n"
            "the loss scale cannot fall after -1 overflows");
  options = {};
  options.fixed = -2;
  EXPECT_EQ(CheckLossScale(options).ToString(),
            "the loss scale must be positive and finite, not -2");
}

TEST(LossScaleTest, StartsOnEveryRank) {
  ChainOptions chain;
  chain.dp = 2;
  Plan plan = ChainPlan(chain);
  int64_t& peak = plan.classes[0].memory.peak;
  plan.classes[0].carried = {{kLossScale, peak}, {kHysteresisLeft, peak + 8}};
  peak += 64;
  const auto kernels = ReferenceKernels();
  ExecutorOptions options;
  options.kernels = kernels;
  const auto executor = Executor::Create(plan, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  LossScaleOptions scale;
  scale.initial = 64;
  scale.hysteresis = 3;
  StartLossScale(scale, **executor);
  for (int64_t rank = 0; rank < 2; ++rank) {
    double found[2];
    (*executor)->Get(rank, peak - 64, sizeof found, found);
    EXPECT_EQ(found[0], 64);
    EXPECT_EQ(found[1], 3);
  }
}

}  // namespace
}  // namespace mgc
