// Training on a GPU is what it is on the CPU, for plans of 1 to 16 ranks that share it: numbers
// within rounding, the same bits whether steps are captured or issued one by one, and the memory
// that the plan says.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/sized_test.h"
#include "tools/devices/devices.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 4;  // issued, captured, launched twice

std::vector<TrainCase> FewCases() {
  return {
      GptCase(1, 1, 1),
      WithZero(WithSequenceParallel(WithSchedule(GptCase(2, 2, 2), ScheduleKind::kInterleaved, 2))),
      WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2)), 3), RecomputeKind::kFull),
  };
}

std::vector<TrainCase> ManyCases() {
  std::vector<TrainCase> cases = FewCases();
  for (const std::vector<TrainCase>& more : {SameLossCases(), ContextParallelCases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

// The largest difference of two lists of tensors, relative to the largest number of each tensor.
double Difference(const Tensors& a, const Tensors& b) {
  double most = 0;
  for (const auto& [name, values] : a) {
    const auto& others = b.at(name);
    EXPECT_EQ(values.size(), others.size()) << name;
    double largest = 1e-30, apart = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::fabs(double{values[i]}));
      apart = std::max(apart, std::fabs(double{values[i]} - double{others[i]}));
    }
    most = std::max(most, apart / largest);
  }
  return most;
}

class CudaTest : public testing::Test {
 public:
  explicit CudaTest(TrainCase c) : case_(std::move(c)) {}

  void TestBody() override {
    const absl::StatusOr<Plan> plan = CompileCase(case_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const absl::StatusOr<TrainResult> on_cpu = Train(*plan, kCpuDevice, true);
    ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
    const absl::StatusOr<TrainResult> issued = Train(*plan, kCudaDevice, false);
    ASSERT_TRUE(issued.ok()) << issued.status();
    ExpectNear(*on_cpu, *issued);
    EXPECT_EQ(issued->planned_peaks, issued->measured_peaks);
    const absl::StatusOr<TrainResult> captured = Train(*plan, kCudaDevice, true);
    ASSERT_TRUE(captured.ok()) << captured.status();
    EXPECT_EQ(issued->losses, captured->losses);
    EXPECT_EQ(issued->grad_norms, captured->grad_norms);
    EXPECT_TRUE(issued->gradients == captured->gradients);
    EXPECT_TRUE(issued->parameters == captured->parameters);
  }

 private:
  absl::StatusOr<TrainResult> Train(const Plan& plan, const char* device, bool graphs) const {
    const absl::StatusOr<RunDevice> made = MakeRunDevice(device, {graphs, /*check_each=*/false});
    if (!made.ok()) return made.status();
    TrainOptions options = OptionsFor(plan, case_, kSteps, /*workers=*/2, made->kernels());
    options.device = made->make;
    return TrainWith(plan, options, kSteps);
  }

  static void ExpectNear(const TrainResult& cpu, const TrainResult& gpu) {
    EXPECT_NEAR(gpu.losses[0] / cpu.losses[0], 1, 1e-6);
    EXPECT_NEAR(gpu.grad_norms[0] / cpu.grad_norms[0], 1, 1e-5);
    for (size_t i = 0; i < static_cast<size_t>(kSteps); ++i) {
      EXPECT_NEAR(gpu.losses[i] / cpu.losses[i], 1, 1e-5) << i;
    }
    EXPECT_LE(Difference(cpu.gradients, gpu.gradients), 1e-4);
  }

  const TrainCase case_;
};

void RegisterCases(int count) {
  constexpr int kFew = 2;
  const std::vector<TrainCase> cases = count > kFew ? ManyCases() : FewCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const TrainCase& c = cases[i];
    RegisterSized<CudaTest>("CudaTest", absl::StrCat(i, "_", NameOf(c)),
                            [c] { return new CudaTest(c); });
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterCases); }
