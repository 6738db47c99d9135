#include "runtime/state/held_tensors.h"

#include "gtest/gtest.h"
#include "runtime/run/testing/chain_plan.h"

namespace mgc {
namespace {

Plan MakePlan() {
  ChainOptions options;
  options.dp = 2;
  return ChainPlan(options);
}

TEST(HeldTensorsTest, OfASoundPlanFit) {
  EXPECT_TRUE(CheckParameters(MakePlan()).ok()) << CheckParameters(MakePlan());
}

TEST(HeldTensorsTest, TooManyElementsAreNamedWithTheLimit) {
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

TEST(HeldTensorsTest, StatesThatNoCheckpointHoldsAreRefused) {
  Plan plan = MakePlan();
  plan.blocks[0].entries[0].states = {{"m", 0}, {"slow", 64}};
  const absl::Status status = CheckParameters(plan);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(status.message(),
            "layers.0.w: keeps a state `slow`, of which checkpoints have no file");
}

// Two parameters of the first block: whole numbers of `w`, four channels of six, and their scales.
Plan WithWholeNumbers() {
  Plan plan = MakePlan();
  ParamBlock& block = plan.blocks[0];
  block.entries.resize(1, block.entries[0]);
  ParamEntry& numbers = block.entries[0];
  numbers.states.clear();
  numbers.init.Set("train", int64_t{0});
  ParamEntry scale = numbers;
  numbers.name = "layers.*.w.int8";
  numbers.type = {DType::kI8, {{6, ""}, {4, ""}}};
  numbers.sharding = numbers.state_sharding = Sharding::Whole(2);
  numbers.init.Set("channels", int64_t{1});
  scale.name = "layers.*.w.scale";
  scale.type = {DType::kF32, {{4, ""}}};
  scale.sharding = scale.state_sharding = Sharding::Whole(1);
  scale.param_offset = 24;
  block.entries.push_back(scale);
  return plan;
}

TEST(HeldTensorsTest, WholeNumbersGoByTheNameOfWhatTheyAreMadeOf) {
  const Plan plan = WithWholeNumbers();
  EXPECT_TRUE(CheckParameters(plan).ok()) << CheckParameters(plan);
  const auto held = HeldTensors(plan, TensorRole::kParam);
  ASSERT_TRUE(held.ok()) << held.status();
  ASSERT_FALSE(held->empty());
  for (const HeldTensor& tensor : *held) {
    EXPECT_EQ(tensor.name.find(".int8"), std::string::npos) << tensor.name;
    EXPECT_EQ(tensor.name.find(".scale"), std::string::npos) << tensor.name;
    ASSERT_TRUE(tensor.scales.has_value());
    EXPECT_EQ(tensor.scales->address, tensor.address + 24);
    EXPECT_EQ(tensor.scales->first_dim, 1);
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckHeldAsCalled(*held)));
}

// The numbers of a weight that is held as well are made of it, and are not what is called so.
TEST(HeldTensorsTest, AParameterOwnsItsNameBeforeWholeNumbersOfIt) {
  Plan plan = WithWholeNumbers();
  ParamEntry itself = plan.blocks[0].entries[0];
  itself.name = "layers.*.w";
  itself.type.dtype = DType::kF32;
  itself.param_offset = 48;
  plan.blocks[0].entries.push_back(itself);
  const auto owned = HeldTensors(plan, TensorRole::kParam);
  const auto all = HeldTensors(plan, TensorRole::kParam, Holders::kAll);
  ASSERT_TRUE(owned.ok() && all.ok());
  EXPECT_EQ(all->size(), 2 * owned->size());
  for (const HeldTensor& tensor : *owned) EXPECT_FALSE(tensor.scales.has_value());
}

TEST(HeldTensorsTest, WholeNumbersWithoutTheirScalesAreRefused) {
  constexpr char kText[] =
      "layers.0.w.int8: is of i8, and no `.scale` beside it has a scale for its channels";
  Plan plan = WithWholeNumbers();
  plan.blocks[0].entries[1].type.dims[0].size = 3;
  EXPECT_EQ(CheckParameters(plan).message(), kText);
  plan = WithWholeNumbers();
  plan.blocks[0].entries[0].init.Set("channels", int64_t{2});
  EXPECT_EQ(CheckParameters(plan).message(), kText);
  plan = WithWholeNumbers();
  plan.blocks[0].entries.pop_back();
  EXPECT_EQ(CheckParameters(plan).message(), kText);
  EXPECT_EQ(HeldTensors(plan, TensorRole::kParam).status().message(), kText);
}

}  // namespace
}  // namespace mgc
