// Texts that a model goes on with, token by token.
//
// Plans of `mgc-compile --next-token` give the logits behind one row of each of their samples; a
// sample is a request.
//
//   whole    every step is given all of a text so far, from the first row on. What fills the rows
//            behind it is seen by none of them
//   prompt   the first step is given the prompts, and keeps their keys and values;
//   token    each other one is given one token more, and sees what is kept

#ifndef MGC_RUNTIME_GENERATE_GENERATOR_H_
#define MGC_RUNTIME_GENERATE_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/generate/choose_token.h"
#include "runtime/generate/step_tensors.h"
#include "runtime/run/executor.h"

namespace mgc {

struct GenerateRequest {
  std::vector<int32_t> prompt;  // at least one token
  int64_t most_tokens = 0;      // behind it, at most
  SamplingOptions sampling;
};

enum class GenerateEnd : uint8_t {
  kMostTokens,  // as many as were asked for
  kEndToken,    // a token that ends texts came; it is among the tokens
  kFull,        // there is no room for more
};

struct GeneratedText {
  std::vector<int32_t> tokens;  // behind the prompt
  GenerateEnd end = GenerateEnd::kMostTokens;
};

struct GenerateOptions {
  ExecutorOptions executor;
  std::vector<int32_t> end_tokens;  // of which any ends a text
  // Tokens from here on never follow: a model's vocabulary may be larger than its tokenizer's. 0:
  // all may.
  int64_t vocabulary = 0;
};

// How long the two parts of a batch took: its first step, and all others.
struct GenerateTimes {
  int64_t prompt_ns = 0;
  int64_t tokens_ns = 0;
  int64_t steps = 0;  // of the second part
};

class Generator {
 public:
  // `first` is of whole texts, and `next` null; or of prompts, and `next` of tokens. Plans must
  // outlive the generator. InvalidArgument for other plans, and for two that do not go together:
  // they hold the same parameters, and keep the same keys and values, at the same addresses. Errors
  // of Executor::Create.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(const Plan& first, const Plan* next,
                                                           const GenerateOptions& options);

  // How many requests a batch has at most, and how many tokens a prompt and a whole text.
  int64_t most_requests() const { return first_.plan().global_batch_size; }
  int64_t most_prompt_tokens() const { return first_.plan().seq_length; }
  int64_t most_text_tokens() const;

  // Called for each token that comes: of which request.
  using TokenFunction = std::function<void(int64_t request, int32_t token)>;

  // Goes on with a batch of requests until all have ended. InvalidArgument, before anything runs,
  // for requests that are too many or too long, tokens outside the vocabulary, and wrong options;
  // OutOfRange where logits are not numbers; errors of a step. All processes of a run call it with
  // the same requests.
  absl::StatusOr<std::vector<GeneratedText>> Run(absl::Span<const GenerateRequest> requests,
                                                 const TokenFunction& on_token = nullptr);

  Executor& executor() { return *executor_; }
  // Of the last batch.
  const GenerateTimes& times() const { return times_; }

 private:
  // A request on its way.
  struct Text {
    std::vector<int32_t> tokens;  // all so far
    bool ended = false;
  };

  Generator(const Plan& first, const Plan* next, std::unique_ptr<Executor> executor,
            const GenerateOptions& options);
  absl::Status Check(absl::Span<const GenerateRequest> requests) const;
  void GiveAll(absl::Span<const Text> texts);
  void GiveLast(absl::Span<const Text> texts);
  absl::StatusOr<std::vector<float>> Step(StepTensors& tensors);
  absl::Status Take(const std::vector<float>& logits, absl::Span<const GenerateRequest> requests,
                    const TokenFunction& on_token, std::vector<Text>* texts,
                    std::vector<GeneratedText>* generated) const;

  StepTensors first_;
  absl::optional<StepTensors> next_;
  const std::unique_ptr<Executor> executor_;
  const std::vector<int32_t> end_tokens_;
  const int64_t vocabulary_;
  GenerateTimes times_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_GENERATE_GENERATOR_H_
