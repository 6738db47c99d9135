#include "graph/types/machine.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

TEST(MachineTest, PresetsAreSound) {
  ASSERT_EQ(MachinePresets().size(), 5u);
  for (const Machine& machine : MachinePresets()) {
    EXPECT_TRUE(CheckMachine(machine).ok()) << CheckMachine(machine);
    EXPECT_EQ(*FindMachinePreset(machine.name), machine);
  }
}

TEST(MachineTest, UnknownPresetNamesTheNearest) {
  const absl::Status status = FindMachinePreset("h100x9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(
      status.message(),
      "no machine is called `h100x9` (did you mean h100x8?); presets are cpu-threads, a100x8, "
      "h100x8, h200x8, b200x8");
}

TEST(MachineTest, TierOfAGroupIsTheInnermostThatHoldsIt) {
  const Machine machine = *FindMachinePreset("a100x8");
  EXPECT_EQ(machine.TierOf({0, 7}).name, "nvlink");
  EXPECT_EQ(machine.TierOf({8, 9, 15}).name, "nvlink");
  EXPECT_EQ(machine.TierOf({7, 8}).name, "infiniband");
  EXPECT_EQ(machine.TierOf({}).name, "nvlink");
}

TEST(MachineTest, RateOfAnUnknownTypeIsThatOfF32) {
  const Machine machine = *FindMachinePreset("h100x8");
  EXPECT_DOUBLE_EQ(machine.RateOf("bf16").At(1e12), 989.4e12 * 0.8);
  EXPECT_DOUBLE_EQ(machine.RateOf("i64").At(1e12), 67e12 * 0.77);
}

TEST(MachineTest, RatesGoLinearlyWithTheLogarithmOfTheSize) {
  ComputeRate rate{"f32", 100, 0.9};
  EXPECT_DOUBLE_EQ(rate.At(0), 90);
  rate.points = {{1e4, 0.2}, {1e6, 0.6}};
  EXPECT_DOUBLE_EQ(rate.At(0), 20);
  EXPECT_DOUBLE_EQ(rate.At(1e4), 20);
  EXPECT_DOUBLE_EQ(rate.At(1e5), 40);
  EXPECT_DOUBLE_EQ(rate.At(1e6), 90);
}

TEST(MachineTest, BandwidthGoesBySizeToo) {
  NetworkTier tier{"cable", kAnyRanks, 100, 0.9, 0, 0, {{1e4, 0.2}, {1e6, 0.6}}};
  EXPECT_DOUBLE_EQ(tier.At(1e5), 40);
  EXPECT_DOUBLE_EQ(tier.At(1e9), 90);
}

TEST(MachineTest, FactorsAreByOpAndType) {
  Machine machine = *FindMachinePreset("cpu-threads");
  EXPECT_EQ(machine.FactorOf("gelu", "f32"), 1);
  machine.ops = {{"gelu", "bf16", 3}, {"gelu", "f32", 2}};
  EXPECT_EQ(machine.FactorOf("gelu", "bf16"), 3);
  EXPECT_EQ(machine.FactorOf("gelu", "f16"), 2);
  EXPECT_EQ(machine.FactorOf("add", "f32"), 1);
}

TEST(MachineTest, AllViolationsAreReported) {
  Machine machine = *FindMachinePreset("a100x8");
  machine.memory = 0;
  machine.memory_efficiency = 1.5;
  machine.op_overhead = -1;
  machine.compute[2].flops = std::numeric_limits<double>::infinity();
  machine.compute[3].dtype = "bf16";
  machine.tiers[0].ranks = 0;
  machine.tiers[1].ranks = 4;
  machine.tiers[1].hop = -2;
  machine.tiers[1].points = {{5, 0.5}, {4, 0.6}};
  machine.cores = -1;
  machine.compute[0].points = {{1e6, 0.5}, {1e6, 0.6}};
  machine.ops = {{"add", "f32", 0}, {"add", "f32", 1}};
  const std::string text(CheckMachine(machine).message());
  EXPECT_THAT(text, HasSubstr("machine: the memory is positive, not 0 [machine_c1]"));
  EXPECT_THAT(text, HasSubstr("the bandwidth of the memory is in (0, 1], not 1.5 [machine_c2]"));
  EXPECT_THAT(text,
              HasSubstr("the overhead of an op is finite and not negative, not -1 [machine_c3]"));
  EXPECT_THAT(text, HasSubstr("the rate of `tf32` is positive and finite, not inf [machine_c1]"));
  EXPECT_THAT(text, HasSubstr("an element type occurs twice [machine_c5]"));
  EXPECT_THAT(text, HasSubstr("the number of cores is not negative, not -1 [machine_c1]"));
  EXPECT_THAT(text, HasSubstr("points of the rate of `bf16` ascend by flops: 1e+06 does not come "
                              "behind 1e+06 [machine_c6]"));
  EXPECT_THAT(
      text,
      HasSubstr("the hop of tier `infiniband` is finite and not negative, not -2 [machine_c3]"));
  EXPECT_THAT(text,
              HasSubstr("points of tier `infiniband` ascend by bytes: 4 does not come behind 5 "
                        "[machine_c6]"));
  EXPECT_THAT(text, HasSubstr("the factor of `add` in `f32` is positive and finite, not 0"));
  EXPECT_THAT(text, HasSubstr("an op occurs twice with the same element type [machine_c5]"));
  EXPECT_THAT(text, HasSubstr("tier `nvlink` connects a multiple of 1 ranks, not 0 [machine_c4]"));
  EXPECT_THAT(text, HasSubstr("tier `infiniband` is the last one"));
}

}  // namespace
}  // namespace mgc
