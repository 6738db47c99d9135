// One step under every kind of parallelism equals the step on one device on every value a user sees
// (loss, gradient norm, gradients, parameters): within rounding in doubles, exactly in residues.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/derivation/local_training.h"

namespace mgc {
namespace {

struct Case {
  const char* family;
  int64_t tp;
  int64_t dp;
  bool sp;
  int64_t zero;
  int64_t vocab;
};

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return absl::StrCat(c.family, "_tp", c.tp, "_dp", c.dp, c.sp ? "_sp" : "", "_zero", c.zero, "_v",
                      c.vocab);
}

class EquivalenceTest : public testing::TestWithParam<Case> {};

TEST_P(EquivalenceTest, OneStepIsThatOfOneDevice) {
  const Case& c = GetParam();
  TinyModel model = std::string(c.family) == "gpt" ? TinyGpt() : TinyLlama();
  model.config.vocab = c.vocab;
  const StepValues one = RunStep(model, LocalGraph(model, ConfigOf(1, 1, false, 0)));
  const StepValues many = RunStep(model, LocalGraph(model, ConfigOf(c.tp, c.dp, c.sp, c.zero)));
  ASSERT_EQ(one.values.size(), many.values.size());
  for (const auto& [name, value] : one.values) {
    // The true gradient of a key bias is zero; what stands there is rounding noise, which Adam
    // turns into whole steps.
    if (name.find("attention.k.bias") != std::string::npos) continue;
    EXPECT_LT(RelativeError(value, many.values.at(name)), 1e-11) << name;
  }
}

TEST_P(EquivalenceTest, OneStepIsExactlyThatOfOneDevice) {
  constexpr uint64_t kKey = 3;
  const Case& c = GetParam();
  TinyModel model = std::string(c.family) == "gpt" ? TinyGpt() : TinyLlama();
  model.config.vocab = c.vocab;
  const ExactStepValues one =
      RunExactStep(model, LocalGraph(model, ConfigOf(1, 1, false, 0)), kKey);
  const ExactStepValues many =
      RunExactStep(model, LocalGraph(model, ConfigOf(c.tp, c.dp, c.sp, c.zero)), kKey);
  ASSERT_EQ(one.values.size(), many.values.size());
  for (const auto& [name, value] : one.values) {
    EXPECT_TRUE(value.real == many.values.at(name).real) << name;
  }
  EXPECT_EQ(one.zero_denominators, 0);
  EXPECT_EQ(many.zero_denominators, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, EquivalenceTest,
    testing::Values(Case{"gpt", 2, 1, false, 0, 13}, Case{"gpt", 4, 1, false, 0, 13},
                    Case{"gpt", 2, 1, true, 0, 13}, Case{"gpt", 1, 2, false, 0, 13},
                    Case{"gpt", 1, 4, false, 1, 13}, Case{"gpt", 2, 2, false, 0, 13},
                    Case{"gpt", 2, 2, true, 1, 13}, Case{"gpt", 4, 2, true, 1, 9},
                    Case{"llama", 2, 1, false, 0, 13}, Case{"llama", 4, 1, false, 0, 13},
                    Case{"llama", 4, 1, true, 0, 13}, Case{"llama", 8, 1, true, 0, 5},
                    Case{"llama", 2, 2, true, 1, 13}, Case{"llama", 4, 2, false, 1, 13},
                    Case{"llama", 4, 4, true, 1, 13}),
    NameOfCase);

}  // namespace
}  // namespace mgc
