#include "runtime/run/finite.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "runtime/run/executor.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/run/testing/device_deferred.h"
#include "runtime/run/testing/reference_kernels.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(NumbersOfTest, FindsTheFirstOfAnyType) {
  const std::vector<float> f32 = {1, -3, kInfinity, kNan};
  const TileNumbers numbers = NumbersOf(DType::kF32, f32.data(), 4);
  EXPECT_EQ(*numbers.first_bad, 2);
  EXPECT_FALSE(numbers.is_nan);
  EXPECT_EQ(numbers.least, -3);
  EXPECT_EQ(numbers.most, 1);
  const std::vector<Bfloat16> bf16 = {ToBfloat16(2), ToBfloat16(kNan)};
  EXPECT_EQ(*NumbersOf(DType::kBF16, bf16.data(), 2).first_bad, 1);
  const std::vector<Float16> f16 = {ToFloat16(65504), ToFloat16(kInfinity)};
  EXPECT_EQ(*NumbersOf(DType::kF16, f16.data(), 2).first_bad, 1);
  const std::vector<double> f64 = {-std::numeric_limits<double>::max()};
  EXPECT_FALSE(NumbersOf(DType::kF64, f64.data(), 1).first_bad.has_value());
  const std::vector<int64_t> i64 = {-1};
  EXPECT_FALSE(NumbersOf(DType::kI64, i64.data(), 1).first_bad.has_value());
}

// A step of a chain whose second stage multiplies by a parameter that is infinite at one place.
absl::Status StepWithInfinity(FiniteCheck check, const DeviceFactory& device = nullptr) {
  ChainOptions options;
  options.pp = 2;
  const Plan plan = ChainPlan(options);
  const std::vector<KernelEntry> kernels = ReferenceKernels();
  ExecutorOptions executor_options;
  executor_options.kernels = kernels;
  executor_options.workers = 2;
  executor_options.check_finite = check;
  executor_options.device = device;
  auto executor = Executor::Create(plan, executor_options);
  if (!executor.ok()) return executor.status();
  InitializeParameters(7, **executor);
  const PlanClass& last = plan.classes[1];
  const int64_t address = last.blocks[0].param_base + plan.blocks[0].entries[0].param_offset;
  (*executor)->Put(1, address + 4 * int64_t{sizeof(float)}, sizeof(float),
                   [](char* to) { *reinterpret_cast<float*>(to) = kInfinity; });
  const auto data = TokenDataset::FromBytes(std::string(100, 'a'), options.seq, "data");
  const NamedScalar scalars[] = {{"lr", 0.1}};
  StepInput input;
  input.data = {&*data, 0, 100};
  input.scalars = scalars;
  return (*executor)->Run(input);
}

TEST(CheckFiniteTest, NamesTheFirstTensorItsPlaceAndItsInputs) {
  EXPECT_TRUE(StepWithInfinity(FiniteCheck::kLoss).ok());
  const absl::Status status = StepWithInfinity(FiniteCheck::kAll);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  for (const char* part :
       {"rank 1 (pp 1), 1F0, forward[0] mul layer 1: step 1: ", " is infinite at [0, 4]",
        "; of its inputs ", " not finite at [4]", "-> forward[0]"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << part << " in\n" << status.message();
  }
}

// It looks at what an instruction has computed, not at what lay there when it was issued.
TEST(CheckFiniteTest, WaitsForWhatIsDoneLater) {
  const absl::Status at_once = StepWithInfinity(FiniteCheck::kAll);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(StepWithInfinity(FiniteCheck::kAll, DeferredDevices({seed, {}})), at_once);
    EXPECT_TRUE(StepWithInfinity(FiniteCheck::kLoss, DeferredDevices({seed, {}})).ok());
  }
}

}  // namespace
}  // namespace mgc
