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
#include "tests/same_loss/cuda_runs.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/sized_test.h"
#include "tools/devices/devices.h"

namespace mgc {
namespace {

constexpr int64_t kFewSteps = 4;  // issued, captured, launched twice
constexpr int64_t kManySteps = 50;
constexpr double kTimes = 1.5;  // as far from f32 as the CPU in a narrower type may a GPU be

std::vector<TrainCase> FewCases() {
  return {
      WithZero(WithSequenceParallel(WithSchedule(GptCase(2, 2, 2), ScheduleKind::kInterleaved, 2))),
      WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2)), 3), RecomputeKind::kFull),
      GptCase(1, 1, 1),
  };
}

std::vector<TrainCase> ManyCases() {
  std::vector<TrainCase> cases = FewCases();
  for (const std::vector<TrainCase>& more : {SameLossCases(), ContextParallelCases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

// With one GPU for all ranks.
absl::StatusOr<TrainResult> Train(const Plan& plan, const TrainCase& c, const char* device,
                                  bool graphs, int64_t steps, uint64_t seed = 1) {
  const CudaSwitches cuda = {graphs, /*check_each=*/false, /*gpus=*/1};
  return TrainOn(plan, c, device, cuda, steps, std::max(steps, kFewSteps), seed);
}

class CudaTest : public testing::Test {
 public:
  CudaTest(TrainCase c, int64_t steps) : case_(std::move(c)), steps_(steps) {}

  void TestBody() override {
    const absl::StatusOr<Plan> plan = CompileCase(case_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const absl::StatusOr<TrainResult> on_cpu = Train(*plan, case_, kCpuDevice, true, kFewSteps);
    ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
    const absl::StatusOr<TrainResult> issued = Train(*plan, case_, kCudaDevice, false, steps_);
    ASSERT_TRUE(issued.ok()) << issued.status();
    ExpectNear(*on_cpu, *issued);
    EXPECT_EQ(issued->planned_peaks, issued->measured_peaks);
    const absl::StatusOr<TrainResult> captured = Train(*plan, case_, kCudaDevice, true, steps_);
    ASSERT_TRUE(captured.ok()) << captured.status();
    ExpectSameBits(*issued, *captured);
  }

 private:
  const TrainCase case_;
  const int64_t steps_;
};

// In bf16 and f16 the first step of a GPU is as near to f32 as the CPU's is.
class NarrowCudaTest : public testing::Test {
 public:
  NarrowCudaTest(TrainCase c, DType type) : case_(std::move(c)), type_(type) {}

  void TestBody() override {
    TrainCase narrow = case_;
    narrow.parallel.compute_type = type_;
    const absl::StatusOr<Plan> exact = CompileCase(case_), rounded = CompileCase(narrow);
    ASSERT_TRUE(exact.ok() && rounded.ok()) << exact.status() << rounded.status();
    double of_cpu = 0, of_gpu = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto wide = Train(*exact, case_, kCpuDevice, true, 1, seed);
      const auto cpu = Train(*rounded, narrow, kCpuDevice, true, 1, seed);
      const auto gpu = Train(*rounded, narrow, kCudaDevice, true, 1, seed);
      ASSERT_TRUE(wide.ok() && cpu.ok() && gpu.ok()) << gpu.status();
      of_cpu += SquaresOf(*wide, *cpu);
      of_gpu += SquaresOf(*wide, *gpu);
    }
    EXPECT_GT(of_gpu, 0);
    EXPECT_LE(std::sqrt(of_gpu), kTimes * std::sqrt(of_cpu));
  }

 private:
  static constexpr uint64_t kSeeds = 6;

  // Of gradients, each relative to its largest number.
  static double SquaresOf(const TrainResult& exact, const TrainResult& found) {
    double sum = 0;
    for (const auto& [name, gradient] : exact.gradients) {
      const double scale = 1 / std::max(ApartOf(gradient, gradient).largest, 1e-3);
      const std::vector<float>& other = found.gradients.at(name);
      for (size_t i = 0; i < gradient.size(); ++i) {
        sum += std::pow(scale * (double{gradient[i]} - other[i]), 2);
      }
    }
    return sum;
  }

  const TrainCase case_;
  const DType type_;
};

// With a count of 1 two cases and few steps, else all.
void RegisterCases(int count) {
  const bool all = count > 1;
  std::vector<TrainCase> cases = all ? ManyCases() : FewCases();
  if (!all) cases.resize(2);
  for (size_t i = 0; i < cases.size(); ++i) {
    const int64_t steps = all && i < FewCases().size() ? kManySteps : kFewSteps;
    RegisterSized<CudaTest>("CudaTest", absl::StrCat(i, "_", NameOf(cases[i])),
                            [c = cases[i], steps] { return new CudaTest(c, steps); });
  }
  if (!all) return;
  for (DType type : {DType::kBF16, DType::kF16}) {
    for (const TrainCase& c : FewCases()) {
      RegisterSized<NarrowCudaTest>("NarrowCudaTest", absl::StrCat(NameOf(type), "_", NameOf(c)),
                                    [c, type] { return new NarrowCudaTest(c, type); });
    }
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterCases); }
