// Tiny models that go on with texts, for tests: their plans in a layout, and what a generator makes
// of them.

#ifndef MGC_TESTS_GENERATE_TINY_TEXTS_H_
#define MGC_TESTS_GENERATE_TINY_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/tensor_type.h"
#include "runtime/generate/generator.h"
#include "runtime/state/parameters.h"

namespace mgc {

inline constexpr int64_t kRequests = 2;
inline constexpr int64_t kWholeTokens = 40;   // of a sample; more than a tiny model's window
inline constexpr int64_t kPromptTokens = 12;  // at most
inline constexpr int64_t kNewTokens = 25;
inline constexpr uint64_t kSeed = 11;  // of parameters

struct Layout {
  int64_t tp = 1, pp = 1, dp = 1;
  std::string stages = {};  // --pipeline-model-parallel-layout
};
std::string NameOf(const Layout& layout);

ModelConfig ConfigOf(const std::string& preset);

// Its samples are of kWholeTokens, of kPromptTokens, or of one token.
Graph GraphOf(const ModelConfig& config, NextToken next_token);

enum class Weights : uint8_t { kAsTheyAre, kWholeNumbers };

// Proved.
absl::StatusOr<Plan> PlanFor(const ModelConfig& config, NextToken next_token, const Layout& layout,
                             DType type = DType::kF32, Weights weights = Weights::kAsTheyAre);

// Of which the second ends early, and one has the longest prompt.
std::vector<GenerateRequest> Requests(double temperature);

// With all kernels of the CPU.
GenerateOptions OnCpu();

// What a model goes on with.
struct Texts {
  std::vector<int32_t> tokens;            // of all requests, one run behind the other
  std::vector<float> logits;              // of the last step that was greedy
  std::vector<LogicalTensor> parameters;  // but where they are held as whole numbers
};

// Without `runs` Requests greedily, and drawn.
absl::StatusOr<Texts> TextsOf(const Plan& first, const Plan* next,
                              const std::vector<std::vector<GenerateRequest>>& runs = {
                                  Requests(0), Requests(0.7)});

// The logits behind the first text, as the graph of whole texts says.
std::vector<double> LogitsInDouble(const Graph& graph, const Texts& texts);

}  // namespace mgc

#endif  // MGC_TESTS_GENERATE_TINY_TEXTS_H_
