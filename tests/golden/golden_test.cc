#include "tests/golden/golden.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/families.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

double Norm(const GoldenTensors& tensors) {
  double sum = 0;
  for (const auto& [name, values] : tensors) {
    for (double value : values) sum += value * value;
  }
  return std::sqrt(sum);
}

// The inputs made here by formula are those that the file was made with, and its parts belong
// together.
TEST(Golden, FilesAreConsistent) {
  for (absl::string_view name : kGoldenNames) {
    absl::StatusOr<Golden> golden = LoadGolden(name);
    ASSERT_TRUE(golden.ok()) << golden.status();
    int64_t elements = 0;
    for (const auto& [parameter, values] : golden->parameters) {
      elements += static_cast<int64_t>(values.size());
      EXPECT_EQ(golden->sum.gradients.at(parameter).size(), values.size())
          << name << " " << parameter;
      if (!golden->weighted) continue;
      EXPECT_EQ(golden->weighted->gradients.at(parameter).size(), values.size())
          << name << " " << parameter;
    }
    EXPECT_EQ(elements, ParameterCount(golden->config)) << name;
    EXPECT_EQ(golden->sum.gradients.size(), golden->shapes.size()) << name;
  }
}

TEST(Golden, EveryFamilyHasAFile) {
  std::set<ModelFamily> covered;
  for (absl::string_view name : kGoldenNames) covered.insert(LoadGolden(name)->config.family);
  EXPECT_EQ(covered.size(), ModelFamilies().size());
}

TEST(Golden, TokensAndWeightsFollowTheirFormulas) {
  JsonValue file = ParseJson(ReadFile("tests/golden/gpt2.json").value(), "gpt2.json").value();
  Golden golden = LoadGolden("gpt2").value();
  int64_t seq = golden.config.seq_length;
  ASSERT_EQ(static_cast<int64_t>(golden.tokens.size()), golden.batch * seq);
  for (int64_t i = 0; i < golden.batch * seq; ++i) {
    const JsonValue& row = file.Find("tokens")->items[i / seq];
    EXPECT_EQ(golden.tokens[i], row.items[i % seq].integer);
    EXPECT_EQ(golden.targets[i], row.items[i % seq + 1].integer);
    EXPECT_EQ(golden.weights[i], file.Find("weights")->items[i / seq].items[i % seq].number);
  }
  EXPECT_EQ(std::count(golden.weights.begin(), golden.weights.end(), 0.0), 3);
}

// The two parts of a file come from separate runs: the mean's gradient is the sum's over the token
// count.
TEST(Golden, TrainingStartsFromTheSameGradient) {
  for (absl::string_view name : {"gpt2", "llama_gqa"}) {
    Golden golden = LoadGolden(name).value();
    ASSERT_TRUE(golden.adamw.has_value()) << name;
    double count = static_cast<double>(golden.tokens.size());
    EXPECT_NEAR(golden.adamw->losses[0], golden.sum.loss / count, 1e-14) << name;
    EXPECT_NEAR(golden.adamw->grad_norms[0], Norm(golden.sum.gradients) / count, 1e-13) << name;
    EXPECT_GT(golden.adamw->grad_norms[0], golden.adamw->clip_grad) << name;
    EXPECT_LT(golden.adamw->losses[1], golden.adamw->losses[0]) << name;
  }
}

}  // namespace
}  // namespace mgc
