// Training is the same, bit for bit, on a device that does everything as late and in as bad an
// order as the plan's waits allow.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/run/testing/device_deferred.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/sized_test.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;

// Each kind of wait, and memory used again and again.
std::vector<TrainCase> FewCases() {
  return {
      WithZero(WithSequenceParallel(WithSchedule(GptCase(2, 2, 2), ScheduleKind::kInterleaved, 2))),
      WithRecompute(WithZero(WithSequenceParallel(LlamaCase(2, 2, 2)), 3), RecomputeKind::kFull),
      WithContextParallel(WithSplitProducts(WithSequenceParallel(GptCase(2, 1, 1)), 2), 2),
  };
}

std::vector<TrainCase> ManyCases() {
  std::vector<TrainCase> cases = FewCases();
  for (const std::vector<TrainCase>& more : {SameLossCases(), ContextParallelCases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

class DeviceTest : public testing::Test {
 public:
  DeviceTest(TrainCase c, int seeds) : case_(std::move(c)), seeds_(seeds) {}

  void TestBody() override {
    const absl::StatusOr<Plan> plan = CompileCase(case_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::vector<KernelEntry> kernels = CpuKernels();
    TrainOptions options = OptionsFor(*plan, case_, kSteps, /*workers=*/2, kernels);
    const absl::StatusOr<TrainResult> at_once = TrainWith(*plan, options, kSteps);
    ASSERT_TRUE(at_once.ok()) << at_once.status();
    for (int seed = 0; seed < seeds_; ++seed) {
      SCOPED_TRACE(absl::StrCat("seed ", seed));
      options.device = DeferredDevices({static_cast<uint64_t>(seed), {}});
      const absl::StatusOr<TrainResult> later = TrainWith(*plan, options, kSteps);
      ASSERT_TRUE(later.ok()) << later.status();
      EXPECT_EQ(at_once->losses, later->losses);
      EXPECT_EQ(at_once->grad_norms, later->grad_norms);
      EXPECT_TRUE(at_once->gradients == later->gradients);
      EXPECT_TRUE(at_once->parameters == later->parameters);
      EXPECT_EQ(at_once->measured_peaks, later->measured_peaks);
    }
  }

 private:
  const TrainCase case_;
  const int seeds_;
};

// `seeds` of each case; where these are many, many cases.
void RegisterCases(int seeds) {
  constexpr int kFewSeeds = 2;
  const std::vector<TrainCase> cases = seeds > kFewSeeds ? ManyCases() : FewCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const TrainCase& c = cases[i];
    RegisterSized<DeviceTest>("DeviceTest", absl::StrCat(i, "_", NameOf(c)),
                              [c, seeds] { return new DeviceTest(c, seeds); });
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterCases); }
