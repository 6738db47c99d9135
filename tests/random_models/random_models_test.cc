// Random models under random configurations: each is compiled and proved, or refused before there
// is a plan. Some are trained, and give one rank's loss and gradients.
//
// Both runs are of f32. Where they differ by more than 1e-5 (train_samples.h says of what), each is
// held against the same step in float64: a model of deep products without norms amplifies rounding,
// and then one rank is as far from the true numbers as many ranks are. Many may be at most 4 times
// as far from float64 as one is (step_in_double.h); no tolerance is wider for it. A model that f32
// cannot compute on one rank either is not compared; these are counted, and are few.

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/random_models/random_case.h"
#include "tests/verify/damage/sized_test.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 20261123;  // of the first case
constexpr int kCasesPerTest = 300;
constexpr int kTrainedOneIn = 12;
constexpr int kShrinkTries = 400;
constexpr int kProvedPercent = 85;
constexpr int kMostBeyond = 2;

class RandomModelsTest : public testing::Test {
 public:
  explicit RandomModelsTest(int first) : first_(first) {}

  void TestBody() override {
    std::map<std::string, int> refused;
    int proved = 0;
    int trained = 0;
    int beyond = 0;  // proved, not compared
    for (int i = first_; i < first_ + kCasesPerTest; ++i) {
      const bool train = i % kTrainedOneIn == 0;
      const RandomCase c = MakeRandomCase(kSeed + static_cast<uint64_t>(i));
      const Outcome outcome = Try(c, train);
      if (!IsRight(outcome.ending)) Report(c, train, outcome);
      beyond += outcome.ending == Ending::kBeyondF32 ? 1 : 0;
      proved += outcome.ending == Ending::kProved ? 1 : 0;
      trained += outcome.ending == Ending::kProved && train ? 1 : 0;
      if (outcome.ending == Ending::kRefused) ++refused[outcome.label];
    }
    absl::PrintF("seeds from %d: %d of %d proved, %d of them trained, %d beyond f32; refused:",
                 kSeed + first_, proved + beyond, kCasesPerTest, trained, beyond);
    for (const auto& [label, count] : refused) absl::PrintF(" %s %d", label, count);
    absl::PrintF("\n");
    EXPECT_GE(100 * (proved + beyond), kProvedPercent * kCasesPerTest);
    EXPECT_LE(beyond, kMostBeyond);
  }

 private:
  static void Report(const RandomCase& c, bool train, const Outcome& outcome) {
    ADD_FAILURE() << "seed " << c.seed << ": " << NameOf(outcome.ending) << ": " << outcome.message
                  << "\n"
                  << TextOf(Shrink(c, train, kShrinkTries));
  }

  const int first_;
};

void RegisterTests(int cases) {
  for (int first = 0; first < cases; first += kCasesPerTest) {
    RegisterSized<RandomModelsTest>("RandomModelsTest", absl::StrCat("From", first),
                                    [first] { return new RandomModelsTest(first); });
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterTests); }
