// How texts end, and what a generator refuses.

#include "runtime/generate/generator.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "runtime/state/parameters.h"
#include "tests/generate/tiny_texts.h"

namespace mgc {
namespace {

// Texts end as they are asked to, and where there is no more room.
TEST(Generator, EndsTexts) {
  const ModelConfig config = ConfigOf("llama-tiny");
  const absl::StatusOr<Plan> prompt = PlanFor(config, NextToken::kPrompt, {});
  const absl::StatusOr<Plan> token = PlanFor(config, NextToken::kToken, {});
  ASSERT_TRUE(prompt.ok() && token.ok());
  GenerateOptions options = OnCpu();
  auto generator = Generator::Create(*prompt, &*token, options);
  ASSERT_TRUE(generator.ok()) << generator.status();
  InitializeParameters(kSeed, (*generator)->executor());
  std::vector<GenerateRequest> requests = Requests(0);
  requests[0].most_tokens = 1000;
  requests[1].most_tokens = 3;
  const auto texts = (*generator)->Run(requests);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ((*texts)[0].end, GenerateEnd::kFull);
  EXPECT_EQ((*texts)[0].tokens.size(), static_cast<size_t>(kWholeTokens) - 3 + 1);
  EXPECT_EQ((*texts)[1].end, GenerateEnd::kMostTokens);
  EXPECT_EQ((*texts)[1].tokens.size(), 3u);
  options.end_tokens = {(*texts)[0].tokens[4]};
  auto ending = Generator::Create(*prompt, &*token, options);
  ASSERT_TRUE(ending.ok()) << ending.status();
  InitializeParameters(kSeed, (*ending)->executor());
  const auto ended = (*ending)->Run(requests);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ((*ended)[0].end, GenerateEnd::kEndToken);
  EXPECT_EQ((*ended)[0].tokens.back(), options.end_tokens[0]);
  EXPECT_LE((*ended)[0].tokens.size(), 5u);
}

// A model may know more tokens than its tokenizer.
TEST(Generator, ChoosesAmongTheVocabulary) {
  const absl::StatusOr<Plan> whole = PlanFor(ConfigOf("llama-tiny"), NextToken::kWhole, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  GenerateOptions options = OnCpu();
  options.vocabulary = 3;
  auto generator = Generator::Create(*whole, nullptr, options);
  ASSERT_TRUE(generator.ok()) << generator.status();
  InitializeParameters(kSeed, (*generator)->executor());
  const auto texts = (*generator)->Run(Requests(1));
  ASSERT_TRUE(texts.ok()) << texts.status();
  for (const int32_t token : (*texts)[0].tokens) EXPECT_LT(token, 3);
}

TEST(Generator, RefusesPlansThatDoNotGoTogether) {
  const ModelConfig llama = ConfigOf("llama-tiny");
  const absl::StatusOr<Plan> whole = PlanFor(llama, NextToken::kWhole, {});
  const absl::StatusOr<Plan> prompt = PlanFor(llama, NextToken::kPrompt, {});
  const absl::StatusOr<Plan> token = PlanFor(llama, NextToken::kToken, {});
  const absl::StatusOr<Plan> cut = PlanFor(llama, NextToken::kToken, {2, 1, 1});
  const absl::StatusOr<Plan> other = PlanFor(ConfigOf("gpt2-tiny"), NextToken::kToken, {});
  ASSERT_TRUE(whole.ok() && prompt.ok() && token.ok() && cut.ok() && other.ok());
  const std::pair<const Plan*, const Plan*> wrong[] = {
      {&*prompt, nullptr}, {&*token, nullptr},  {&*whole, &*token}, {&*prompt, &*whole},
      {&*prompt, &*cut},   {&*prompt, &*other}, {&*token, &*prompt}};
  for (const auto& [first, next] : wrong) {
    const auto generator = Generator::Create(*first, next, OnCpu());
    EXPECT_TRUE(absl::IsInvalidArgument(generator.status())) << generator.status();
  }
}

TEST(Generator, RefusesRequestsBeforeAnythingRuns) {
  const absl::StatusOr<Plan> whole = PlanFor(ConfigOf("llama-tiny"), NextToken::kWhole, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  auto generator = Generator::Create(*whole, nullptr, OnCpu());
  ASSERT_TRUE(generator.ok()) << generator.status();
  std::vector<GenerateRequest> requests(3);
  requests[1].prompt.assign(kWholeTokens + 1, 1);
  requests[2].prompt = {1, 257};
  requests[2].sampling.top_p = 2;
  const std::string text((*generator)->Run(requests).status().message());
  for (const char* part : {"3 requests; the plan takes 2", "request 0: a prompt of 0 tokens",
                           "request 1: a prompt of 41 tokens", "token 257 is none", "top-p"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace mgc
