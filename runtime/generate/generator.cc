#include "runtime/generate/generator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "graph/ir/vocabulary.h"
#include "runtime/generate/read_result.h"
#include "runtime/state/parameters.h"

namespace mgc {
namespace {

SampleTensor Zeros(const DataInput& input, int64_t samples) {
  SampleTensor tensor;
  tensor.shape = SizesOf(input.type);
  tensor.shape[0] = samples;
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= size;
  if (input.type.dtype == DType::kI64) {
    tensor.values = std::vector<int64_t>(static_cast<size_t>(elements), 0);
  } else {
    tensor.values = std::vector<float>(static_cast<size_t>(elements), 0);
  }
  return tensor;
}

std::vector<int64_t>& Integers(SampleTensor* tensor) {
  return std::get<std::vector<int64_t>>(tensor->values);
}
std::vector<float>& Reals(SampleTensor* tensor) {
  return std::get<std::vector<float>>(tensor->values);
}

absl::Status CheckGivesLogits(const Plan& plan) {
  const Graph& model = plan.model;
  bool gives = false;
  for (const PlanClass& rank_class : plan.classes) {
    for (const NamedTensor& result : rank_class.results) {
      gives |= result.name == kLogitsResult && result.type.ndim() == 2;
    }
  }
  const bool asks = model.FindValue(kTokensInput) != kNone && model.FindValue(kRowInput) != kNone;
  if (gives && asks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the plan gives no logits of a next token; `mgc-compile --next-token` makes one that does");
}

}  // namespace

Generator::Generator(const Plan& plan, std::unique_ptr<Executor> executor,
                     std::vector<int32_t> end_tokens)
    : plan_(plan),
      executor_(std::move(executor)),
      end_tokens_(std::move(end_tokens)),
      inputs_(DataInputsOf(plan)) {
  tensors_.reserve(inputs_.size());
  for (const DataInput& input : inputs_) {
    tensors_.push_back(Zeros(input, plan.global_batch_size));
    const bool made = FeedOf(input.name, input.type, plan.seq_length) == DataFeed::kOnes;
    given_.push_back(made ? nullptr : &tensors_.back());
  }
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(const Plan& plan,
                                                             const GenerateOptions& options) {
  MGC_RETURN_IF_ERROR(CheckGivesLogits(plan));
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                       Executor::Create(plan, options.executor));
  return std::unique_ptr<Generator>(new Generator(plan, std::move(executor), options.end_tokens));
}

SampleTensor* Generator::Input(absl::string_view name) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == name) return &tensors_[i];
  }
  return nullptr;
}

absl::Status Generator::Check(absl::Span<const GenerateRequest> requests) const {
  Diagnostics wrong;
  const auto add = [&](const std::string& place, const auto&... text) {
    wrong.Add("", place, absl::StrCat(text...));
  };
  if (static_cast<int64_t>(requests.size()) > most_requests()) {
    add("", requests.size(), " requests; the plan takes ", most_requests(), " at a time");
  }
  for (size_t r = 0; r < requests.size(); ++r) {
    const std::string place = absl::StrCat("request ", r);
    const GenerateRequest& request = requests[r];
    const int64_t tokens = static_cast<int64_t>(request.prompt.size());
    if (tokens < 1 || tokens > most_tokens()) {
      add(place, "a prompt of ", tokens, " tokens; the plan's samples have 1 to ", most_tokens());
    }
    const auto outside = [this](int32_t token) {
      return token < 0 || (plan_.vocab > 0 && token >= plan_.vocab);
    };
    const auto bad = std::find_if(request.prompt.begin(), request.prompt.end(), outside);
    if (bad != request.prompt.end()) {
      add(place, "token ", *bad, " is none of the model's ", plan_.vocab);
    }
    for (const Diagnostic& violation : CheckSampling(request.sampling)) add(place, violation.text);
  }
  return wrong.ToStatus();
}

absl::Status Generator::Step() {
  StepInput step;
  step.data.end_sample = plan_.global_batch_size;
  step.data.tensors = given_;
  return executor_->Run(step);
}

absl::StatusOr<std::vector<GeneratedText>> Generator::Run(
    absl::Span<const GenerateRequest> requests, const TokenFunction& on_token) {
  MGC_RETURN_IF_ERROR(Check(requests));
  const size_t room = static_cast<size_t>(most_tokens());
  std::vector<int64_t>& tokens = Integers(Input(kTokensInput));
  std::vector<float>& rows = Reals(Input(kRowInput));
  std::fill(tokens.begin(), tokens.end(), 0);
  std::vector<GeneratedText> texts(requests.size());
  std::vector<size_t> known(requests.size());  // tokens of each
  std::vector<bool> ended(requests.size());
  for (size_t r = 0; r < requests.size(); ++r) {
    std::copy(requests[r].prompt.begin(), requests[r].prompt.end(), tokens.begin() + r * room);
    known[r] = requests[r].prompt.size();
    ended[r] = requests[r].most_tokens <= 0;
  }
  while (std::count(ended.begin(), ended.end(), false) > 0) {
    std::fill(rows.begin(), rows.end(), 0.0f);
    for (size_t r = 0; r < requests.size(); ++r) rows[r * room + known[r] - 1] = 1;
    MGC_RETURN_IF_ERROR(Step());
    MGC_ASSIGN_OR_RETURN(const std::vector<float> logits, ReadResult(*executor_, kLogitsResult));
    const size_t vocab = logits.size() / static_cast<size_t>(most_requests());
    for (size_t r = 0; r < requests.size(); ++r) {
      if (ended[r]) continue;
      const int64_t next = ChooseToken(absl::MakeConstSpan(logits).subspan(r * vocab, vocab),
                                       requests[r].sampling, static_cast<int64_t>(known[r]));
      if (next < 0) {
        return absl::OutOfRangeError(absl::StrCat("request ", r, ": logits behind token ", known[r],
                                                  " are not all numbers"));
      }
      const int32_t token = static_cast<int32_t>(next);
      texts[r].tokens.push_back(token);
      if (on_token) on_token(static_cast<int64_t>(r), token);
      const bool stops =
          std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
      const bool enough = static_cast<int64_t>(texts[r].tokens.size()) == requests[r].most_tokens;
      ended[r] = stops || enough || known[r] == room;
      texts[r].end = stops    ? GenerateEnd::kEndToken
                     : enough ? GenerateEnd::kMostTokens
                              : GenerateEnd::kFull;
      if (!ended[r]) tokens[r * room + known[r]++] = token;
    }
  }
  return texts;
}

}  // namespace mgc
