// Texts that a model goes on with, token by token.
//
// A plan of `mgc-compile --next-token` gives the logits behind one row of each of its samples. A
// sample is a request: its tokens so far, from the first row on. What fills the rows behind them is
// seen by none of them.

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
#include "graph/plan/data_input.h"
#include "runtime/data/sample_tensor.h"
#include "runtime/generate/choose_token.h"
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
  kFull,        // the plan's samples have no more room
};

struct GeneratedText {
  std::vector<int32_t> tokens;  // behind the prompt
  GenerateEnd end = GenerateEnd::kMostTokens;
};

struct GenerateOptions {
  ExecutorOptions executor;
  std::vector<int32_t> end_tokens;  // of which any ends a text
};

class Generator {
 public:
  // `plan` must outlive the generator. InvalidArgument for a plan that gives no logits of a next
  // token; errors of Executor::Create.
  static absl::StatusOr<std::unique_ptr<Generator>> Create(const Plan& plan,
                                                           const GenerateOptions& options);

  // How many requests a batch has at most, and how many tokens each has room for.
  int64_t most_requests() const { return plan_.global_batch_size; }
  int64_t most_tokens() const { return plan_.seq_length; }

  // Called for each token that comes: of which request.
  using TokenFunction = std::function<void(int64_t request, int32_t token)>;

  // Goes on with a batch of requests until all have ended. InvalidArgument, before anything runs,
  // for requests that are too many or too long, tokens outside the vocabulary, and wrong options;
  // OutOfRange where logits are not numbers; errors of a step. All processes of a run call it with
  // the same requests.
  absl::StatusOr<std::vector<GeneratedText>> Run(absl::Span<const GenerateRequest> requests,
                                                 const TokenFunction& on_token = nullptr);

  Executor& executor() { return *executor_; }

 private:
  Generator(const Plan& plan, std::unique_ptr<Executor> executor, std::vector<int32_t> end_tokens);
  absl::Status Check(absl::Span<const GenerateRequest> requests) const;
  absl::Status Step();
  SampleTensor* Input(absl::string_view name);

  const Plan& plan_;
  const std::unique_ptr<Executor> executor_;
  const std::vector<int32_t> end_tokens_;
  const std::vector<DataInput> inputs_;
  std::vector<SampleTensor> tensors_;  // by input; those that a step makes itself are empty
  std::vector<const SampleTensor*> given_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_GENERATE_GENERATOR_H_
