// A model goes on with texts by the same tokens in every layout, with keys and values kept and
// without; and its logits are those of the graph's definition in float64.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/step_names.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "passes/graph/quantize.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/read_result.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

constexpr int64_t kRequests = 2;
constexpr int64_t kWholeTokens = 40;   // of a sample; more than the windows of the tiny models
constexpr int64_t kPromptTokens = 12;  // at most
constexpr int64_t kNewTokens = 25;
constexpr uint64_t kSeed = 11;

struct Layout {
  int64_t tp = 1, pp = 1, dp = 1;
};
std::string NameOf(const Layout& layout) {
  return absl::StrCat("tp", layout.tp, "pp", layout.pp, "dp", layout.dp);
}

ModelConfig ConfigOf(const std::string& preset) {
  ModelConfig config = *LoadModelPreset(preset);
  config.initializer_range = 0.2;  // logits far apart
  return config;
}

Graph GraphOf(const ModelConfig& config, NextToken next_token) {
  ModelOptions model;
  model.next_token = next_token;
  model.kept = kWholeTokens;
  const int64_t seq = next_token == NextToken::kToken    ? 1
                      : next_token == NextToken::kPrompt ? kPromptTokens
                                                         : kWholeTokens;
  return *BuildModel(config, kRequests, seq, model);
}

enum class Weights : uint8_t { kAsTheyAre, kWholeNumbers };

absl::StatusOr<Plan> PlanFor(const ModelConfig& config, NextToken next_token, const Layout& layout,
                             DType type = DType::kF32, Weights weights = Weights::kAsTheyAre) {
  Graph graph = GraphOf(config, next_token);
  if (weights == Weights::kWholeNumbers) {
    MGC_ASSIGN_OR_RETURN(graph, Quantize(graph));
  }
  CompileOptions options;
  ParallelConfig& parallel = options.parallel;
  parallel.tp = layout.tp;
  parallel.pp = layout.pp;
  parallel.world_size = layout.tp * layout.pp * layout.dp;
  parallel.global_batch_size = kRequests;
  parallel.micro_batch_size = kRequests / layout.dp;
  parallel.compute_type = type;
  parallel.seq_length = graph.type(graph.FindValue(kTokensInput)).dims[1].size;
  options.machine = *FindMachinePreset("cpu-threads");
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(graph, DimsOf(config), options));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  return plan;
}

// Of which the second ends early, and one has the longest prompt.
std::vector<GenerateRequest> Requests(double temperature) {
  std::vector<GenerateRequest> requests(kRequests);
  requests[0].prompt = {7, 100, 3};
  for (int64_t i = 0; i < kPromptTokens; ++i) {
    requests[1].prompt.push_back(static_cast<int32_t>((i * i + 5) % 250));
  }
  for (size_t r = 0; r < requests.size(); ++r) {
    requests[r].most_tokens = kNewTokens - 4 * static_cast<int64_t>(r);
    requests[r].sampling.temperature = temperature;
    requests[r].sampling.seed = r;
  }
  return requests;
}

// What a model goes on with; greedily, and drawn.
struct Texts {
  std::vector<int32_t> tokens;
  std::vector<float> logits;              // of the last step that was greedy
  std::vector<LogicalTensor> parameters;  // but where they are held as whole numbers
};

absl::StatusOr<Texts> TextsOf(const Plan& first, const Plan* next,
                              const std::vector<std::vector<GenerateRequest>>& runs = {
                                  Requests(0), Requests(0.7)}) {
  const std::vector<KernelEntry> kernels = CpuKernels();
  GenerateOptions options;
  options.executor.kernels = kernels;
  options.executor.workers = 2;
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                       Generator::Create(first, next, options));
  InitializeParameters(kSeed, generator->executor());
  Texts texts;
  for (const std::vector<GenerateRequest>& requests : runs) {
    MGC_ASSIGN_OR_RETURN(const std::vector<GeneratedText> made, generator->Run(requests));
    for (const GeneratedText& text : made) {
      texts.tokens.insert(texts.tokens.end(), text.tokens.begin(), text.tokens.end());
    }
    if (requests[0].sampling.temperature > 0) continue;
    MGC_ASSIGN_OR_RETURN(texts.logits, ReadResult(generator->executor(), kLogitsResult));
  }
  auto parameters = GatherTensors(generator->executor(), TensorRole::kParam);
  if (!absl::IsFailedPrecondition(parameters.status())) {
    MGC_ASSIGN_OR_RETURN(texts.parameters, std::move(parameters));
  }
  return texts;
}

// The logits behind the first text, as the graph of whole texts says.
std::vector<double> LogitsInDouble(const Graph& graph, const Texts& texts) {
  using Values = HostTensor<double>;
  GraphEvaluator<DoubleModel> evaluator(graph, DoubleModel(), 0);
  for (const GraphInput& input : graph.inputs()) {
    evaluator.SetZero(input.value);
    for (const LogicalTensor& parameter : texts.parameters) {
      if (parameter.name != graph.value(input.value).name) continue;
      auto values = Values::Make(parameter.shape, false);
      values.real.assign(parameter.values.begin(), parameter.values.end());
      evaluator.Set(input.value, values);
    }
  }
  std::vector<int32_t> text = Requests(0)[0].prompt;
  text.insert(text.end(), texts.tokens.begin(), texts.tokens.begin() + kNewTokens - 1);
  auto tokens = Values::Make({kRequests, kWholeTokens}, true);
  auto rows = Values::Make({kRequests, kWholeTokens}, false);
  std::copy(text.begin(), text.end(), tokens.index.begin());
  rows.real[text.size() - 1] = 1;
  evaluator.Set(graph.FindValue(kTokensInput), tokens);
  evaluator.Set(graph.FindValue(kRowInput), rows);
  evaluator.Run({Phase::kForward}, 0);
  for (const GraphOutput& output : graph.outputs()) {
    if (output.name == kLogitsResult) return evaluator.Whole(output.value).real;
  }
  return {};
}

class SameTokensTest : public testing::TestWithParam<const char*> {};

TEST_P(SameTokensTest, InEveryLayoutKeptOrNot) {
  const ModelConfig config = ConfigOf(GetParam());
  absl::StatusOr<Texts> expected = absl::UnknownError("");
  for (const Layout& layout :
       {Layout{}, Layout{2, 1, 1}, Layout{1, 2, 1}, Layout{4, 1, 2}, Layout{2, 2, 2}}) {
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

// Texts end as they are asked to, and where there is no more room.
TEST(Generator, EndsTexts) {
  const ModelConfig config = ConfigOf("llama-tiny");
  const absl::StatusOr<Plan> prompt = PlanFor(config, NextToken::kPrompt, {});
  const absl::StatusOr<Plan> token = PlanFor(config, NextToken::kToken, {});
  ASSERT_TRUE(prompt.ok() && token.ok());
  const std::vector<KernelEntry> kernels = CpuKernels();
  GenerateOptions options;
  options.executor.kernels = kernels;
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
  const std::vector<KernelEntry> kernels = CpuKernels();
  GenerateOptions options;
  options.executor.kernels = kernels;
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
  const std::vector<KernelEntry> kernels = CpuKernels();
  GenerateOptions options;
  options.executor.kernels = kernels;
  const std::pair<const Plan*, const Plan*> wrong[] = {
      {&*prompt, nullptr}, {&*token, nullptr},  {&*whole, &*token}, {&*prompt, &*whole},
      {&*prompt, &*cut},   {&*prompt, &*other}, {&*token, &*prompt}};
  for (const auto& [first, next] : wrong) {
    const auto generator = Generator::Create(*first, next, options);
    EXPECT_TRUE(absl::IsInvalidArgument(generator.status())) << generator.status();
  }
}

TEST(Generator, RefusesRequestsBeforeAnythingRuns) {
  const absl::StatusOr<Plan> whole = PlanFor(ConfigOf("llama-tiny"), NextToken::kWhole, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::vector<KernelEntry> kernels = CpuKernels();
  GenerateOptions options;
  options.executor.kernels = kernels;
  auto generator = Generator::Create(*whole, nullptr, options);
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
