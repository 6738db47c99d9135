// A model goes on with texts by the same tokens in every layout, with keys and values kept and
// without; and its logits are those of the graph's definition in float64.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/types/tensor_type.h"
#include "gtest/gtest.h"
#include "passes/graph/quantize.h"
#include "tests/generate/tiny_texts.h"

namespace mgc {
namespace {

class SameTokensTest : public testing::TestWithParam<const char*> {};

TEST_P(SameTokensTest, InEveryLayoutKeptOrNot) {
  const ModelConfig config = ConfigOf(GetParam());
  absl::StatusOr<Texts> expected = absl::UnknownError("");
  const Layout layouts[] = {{}, {2, 1, 1}, {1, 2, 1}, {1, 3, 1, "Ett|tt|L"}, {4, 1, 2}, {2, 2, 2}};
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(NameOf(layout));
    const absl::StatusOr<Plan> whole = PlanFor(config, NextToken::kWhole, layout);
    const absl::StatusOr<Plan> prompt = PlanFor(config, NextToken::kPrompt, layout);
    const absl::StatusOr<Plan> token = PlanFor(config, NextToken::kToken, layout);
    ASSERT_TRUE(whole.ok()) << whole.status();
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    ASSERT_TRUE(token.ok()) << token.status();
    const absl::StatusOr<Texts> anew = TextsOf(*whole, nullptr);
    ASSERT_TRUE(anew.ok()) << anew.status();
    if (!expected.ok()) expected = anew;
    const absl::StatusOr<Texts> kept = TextsOf(*prompt, &*token);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(anew->tokens, expected->tokens);
    EXPECT_EQ(kept->tokens, expected->tokens);
    for (size_t i = 0; i < expected->logits.size() / kRequests; ++i) {
      ASSERT_NEAR(anew->logits[i], expected->logits[i], 1e-4) << "logit " << i;
      ASSERT_NEAR(kept->logits[i], expected->logits[i], 1e-4) << "logit " << i;
    }
  }
  ModelConfig without_dropout = config;  // a step that is asked has none
  without_dropout.embedding_dropout = without_dropout.hidden_dropout = 0;
  without_dropout.attention_dropout = 0;
  const std::vector<double> exact =
      LogitsInDouble(GraphOf(without_dropout, NextToken::kWhole), *expected);
  ASSERT_EQ(exact.size(), expected->logits.size());
  for (size_t i = 0; i < exact.size() / kRequests; ++i) {
    EXPECT_NEAR(expected->logits[i], exact[i], 1e-4) << "logit " << i;
  }
}

double RelativeDifference(const std::vector<float>& exact, const std::vector<float>& found) {
  double squares = 0, differences = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    squares += double{exact[i]} * exact[i];
    differences += std::pow(double{exact[i]} - found[i], 2);
  }
  return std::sqrt(differences / squares);
}

// What is held in bf16 is read so anyway: weights take half the memory, and the logits behind a
// prompt and one token more are as near to f32 as those of a step that is given all of the text.
TEST_P(SameTokensTest, HeldInBf16) {
  const ModelConfig config = ConfigOf(GetParam());
  const absl::StatusOr<Plan> wide = PlanFor(config, NextToken::kWhole, {});
  const absl::StatusOr<Plan> whole = PlanFor(config, NextToken::kWhole, {}, DType::kBF16);
  ASSERT_TRUE(wide.ok()) << wide.status();
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const Layout& layout : {Layout{}, Layout{2, 2, 2}}) {
    SCOPED_TRACE(NameOf(layout));
    const absl::StatusOr<Plan> prompt = PlanFor(config, NextToken::kPrompt, layout, DType::kBF16);
    const absl::StatusOr<Plan> token = PlanFor(config, NextToken::kToken, layout, DType::kBF16);
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    ASSERT_TRUE(token.ok()) << token.status();
    for (const ParamBlock& block : token->blocks) {
      for (const ParamEntry& entry : block.entries) {
        const bool of_norm = absl::StrContains(entry.name, "norm");
        EXPECT_EQ(entry.type.dtype, of_norm ? DType::kF32 : DType::kBF16) << entry.name;
      }
      for (const NamedTensor& kept : block.kept) EXPECT_EQ(kept.type.dtype, DType::kBF16);
    }
    std::vector<GenerateRequest> requests = Requests(0);
    for (GenerateRequest& request : requests) request.most_tokens = 2;
    const absl::StatusOr<Texts> narrow = TextsOf(*prompt, &*token, {requests});
    ASSERT_TRUE(narrow.ok()) << narrow.status();
    // The same text, which may be another than f32 goes on with.
    for (size_t r = 0; r < requests.size(); ++r) {
      requests[r].prompt.push_back(narrow->tokens[2 * r]);
      requests[r].most_tokens = 1;
    }
    const absl::StatusOr<Texts> expected = TextsOf(*wide, nullptr, {requests});
    ASSERT_TRUE(expected.ok()) << expected.status();
    const absl::StatusOr<Texts> anew = TextsOf(*whole, nullptr, {requests});
    ASSERT_TRUE(anew.ok()) << anew.status();
    const double rounding = RelativeDifference(expected->logits, anew->logits);
    EXPECT_LT(rounding, 0x1p-4);
    EXPECT_LT(RelativeDifference(expected->logits, narrow->logits), 1.5 * rounding);
  }
}

// What becomes of parameters in a graph whose products read whole numbers.
std::vector<LogicalTensor> AsWholeNumbers(const Graph& graph,
                                          const std::vector<LogicalTensor>& parameters) {
  std::vector<LogicalTensor> made = parameters;
  for (const LogicalTensor& w : parameters) {
    const ValueId numbers = graph.FindValue(absl::StrCat(w.name, ".int8"));
    if (numbers == kNone) continue;
    const ValueId scale = graph.FindValue(absl::StrCat(w.name, ".scale"));
    const std::vector<int64_t> channels = SizesOf(graph.type(scale));
    const int64_t first = graph.FindInput(numbers)->attrs.Int("channels");
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(first) + channels.size(); d < w.shape.size(); ++d) {
      inner *= w.shape[d];
    }
    std::vector<float> scales(static_cast<size_t>(NumElements(channels)));
    const auto channel_of = [&](size_t i) {
      return i / static_cast<size_t>(inner) % scales.size();
    };
    LogicalTensor whole = {absl::StrCat(w.name, ".int8"), w.shape, w.values};
    for (size_t i = 0; i < w.values.size(); ++i) {
      float& largest = scales[channel_of(i)];
      largest = std::max(largest, std::fabs(w.values[i]) / 127);
    }
    for (size_t i = 0; i < w.values.size(); ++i) {
      whole.values[i] = std::round(w.values[i] / scales[channel_of(i)]);
    }
    made.push_back(std::move(whole));
    made.push_back({absl::StrCat(w.name, ".scale"), channels, std::move(scales)});
  }
  return made;
}

// Weights as whole numbers: the same text in every layout, by logits that are those of the graph
// with these numbers in float64; and near those of the weights that they stand for.
TEST_P(SameTokensTest, HeldInInt8) {
  const ModelConfig config = ConfigOf(GetParam());
  const absl::StatusOr<Plan> as_they_are = PlanFor(config, NextToken::kWhole, {});
  ASSERT_TRUE(as_they_are.ok()) << as_they_are.status();
  const absl::StatusOr<Texts> original = TextsOf(*as_they_are, nullptr);
  ASSERT_TRUE(original.ok()) << original.status();
  absl::StatusOr<Texts> expected = absl::UnknownError("");
  for (const Layout& layout : {Layout{}, Layout{2, 2, 2}}) {
    SCOPED_TRACE(NameOf(layout));
    const auto plan_for = [&](NextToken next_token) {
      return PlanFor(config, next_token, layout, DType::kF32, Weights::kWholeNumbers);
    };
    const absl::StatusOr<Plan> whole = plan_for(NextToken::kWhole);
    const absl::StatusOr<Plan> prompt = plan_for(NextToken::kPrompt);
    const absl::StatusOr<Plan> token = plan_for(NextToken::kToken);
    ASSERT_TRUE(whole.ok()) << whole.status();
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    ASSERT_TRUE(token.ok()) << token.status();
    const absl::StatusOr<Texts> anew = TextsOf(*whole, nullptr);
    const absl::StatusOr<Texts> kept = TextsOf(*prompt, &*token);
    ASSERT_TRUE(anew.ok()) << anew.status();
    ASSERT_TRUE(kept.ok()) << kept.status();
    if (!expected.ok()) expected = anew;
    EXPECT_EQ(anew->tokens, expected->tokens);
    EXPECT_EQ(kept->tokens, expected->tokens);
  }
  ModelConfig without_dropout = config;
  without_dropout.embedding_dropout = without_dropout.hidden_dropout = 0;
  without_dropout.attention_dropout = 0;
  const absl::StatusOr<Graph> graph = Quantize(GraphOf(without_dropout, NextToken::kWhole));
  ASSERT_TRUE(graph.ok()) << graph.status();
  Texts exact = *expected;
  exact.parameters = AsWholeNumbers(*graph, original->parameters);
  ASSERT_GT(exact.parameters.size(), original->parameters.size());
  const std::vector<double> logits = LogitsInDouble(*graph, exact);
  ASSERT_EQ(logits.size(), expected->logits.size());
  for (size_t i = 0; i < logits.size() / kRequests; ++i) {
    EXPECT_NEAR(expected->logits[i], logits[i], 1e-4) << "logit " << i;
  }
  // Of the same text, with the weights that the numbers stand for.
  exact.parameters = original->parameters;
  const std::vector<double> near =
      LogitsInDouble(GraphOf(without_dropout, NextToken::kWhole), exact);
  const auto first_of = [](const auto& all) {
    return std::vector<float>(all.begin(), all.begin() + all.size() / kRequests);
  };
  EXPECT_LT(RelativeDifference(first_of(near), first_of(expected->logits)), 0x1p-4);
}

INSTANTIATE_TEST_SUITE_P(Families, SameTokensTest,
                         testing::Values("gpt2-tiny", "llama-tiny", "qwen2-tiny", "qwen3-tiny",
                                         "mistral-tiny", "phi3-tiny", "gpt-neox-tiny", "gemma-tiny",
                                         "gemma2-tiny"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace mgc
