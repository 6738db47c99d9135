// Texts that a model goes on with, to be timed: a batch of prompts, or the tokens behind them.

#ifndef MGC_TOOLS_BENCHMARKS_GENERATION_H_
#define MGC_TOOLS_BENCHMARKS_GENERATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontends/model_config.h"
#include "graph/types/machine.h"
#include "graph/types/tensor_type.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

// What a step of a side is.
enum class TextPart : uint8_t {
  kPrompt,  // all prompts of the batch, and the first token behind each
  kTokens,  // the tokens behind that one, each of which sees the keys and values that are kept
};
absl::string_view NameOf(TextPart part);  // `prompt`, `tokens`

struct GenerationCase {
  TextPart part = TextPart::kPrompt;
  int64_t texts = 1;  // at a time
  int64_t prompt_tokens = 128;
  int64_t new_tokens = 64;  // of a step of kTokens
  bool int8 = false;        // weights of products are whole numbers

  // Of all texts, in one step.
  int64_t tokens() const {
    return texts * (part == TextPart::kPrompt ? prompt_tokens : new_tokens);
  }
};

// On one rank, with `workers` threads; weights are random, the most probable token follows. Errors
// of the compiler and of Generator::Create.
absl::StatusOr<std::unique_ptr<BenchSide>> GenerationSide(const GenerationCase& generation,
                                                          const ModelConfig& config, DType type,
                                                          const Machine& machine, int workers);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_GENERATION_H_
