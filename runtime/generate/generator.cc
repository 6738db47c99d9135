#include "runtime/generate/generator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "graph/ir/results.h"
#include "graph/ir/step_names.h"
#include "runtime/generate/read_result.h"
#include "runtime/run/trace.h"

namespace mgc {
namespace {

bool GivesLogits(const Plan& plan) {
  bool gives = false;
  for (const PlanClass& rank_class : plan.classes) {
    for (const NamedTensor& result : rank_class.results) {
      gives |= result.name == kLogitsResult && result.type.ndim() == 2;
    }
  }
  return gives && plan.model.FindValue(kTokensInput) != kNone &&
         plan.model.FindValue(kRowInput) != kNone;
}

// What its steps keep of a sample: so many tokens; 0: nothing.
int64_t KeptTokens(const Plan& plan) {
  for (const ParamBlock& block : plan.blocks) {
    if (!block.kept.empty()) return block.kept[0].type.dims[1].size;
  }
  return 0;
}

absl::Status CheckPlans(const Plan& first, const Plan* next) {
  constexpr char kHow[] = "mgc-compile --next-token whole, or --next-token prompt and token";
  Diagnostics wrong;
  const auto require = [&](bool holds, const char* text) {
    if (!holds) wrong.Add({"", text, kHow});
  };
  require(GivesLogits(first), "the plan gives no logits of a next token");
  if (next == nullptr) {
    require(KeptTokens(first) == 0, "a plan of prompts goes on by a plan of tokens");
    return wrong.ToStatus();
  }
  require(GivesLogits(*next), "the second plan gives no logits of a next token");
  require(KeptTokens(first) > 0 && KeptTokens(*next) == KeptTokens(first),
          "the plans do not keep keys and values of as many tokens");
  require(next->seq_length == 1, "the second plan is not one of tokens");
  require(next->global_batch_size == first.global_batch_size && next->vocab == first.vocab,
          "the plans are of other models, or of other numbers of requests");
  return wrong.ToStatus();
}

// Of a sample's kept tokens those that the one at `place` sees (SeenInput).
void SetSeen(int64_t place, int64_t window, absl::Span<int64_t> seen) {
  for (int64_t t = 0; t < static_cast<int64_t>(seen.size()); ++t) {
    const bool is_near = window == 0 || place - t < window;
    seen[static_cast<size_t>(t)] = t <= place && is_near ? 1 : 0;
  }
}

}  // namespace

Generator::Generator(const Plan& first, const Plan* next, std::unique_ptr<Executor> executor,
                     const GenerateOptions& options)
    : first_(first),
      executor_(std::move(executor)),
      end_tokens_(options.end_tokens),
      vocabulary_(options.vocabulary) {
  if (next != nullptr) next_.emplace(*next);
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(const Plan& first, const Plan* next,
                                                             const GenerateOptions& options) {
  MGC_RETURN_IF_ERROR(CheckPlans(first, next));
  ExecutorOptions executor_options = options.executor;
  if (next != nullptr) executor_options.others = {next};
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                       Executor::Create(first, executor_options));
  return std::unique_ptr<Generator>(new Generator(first, next, std::move(executor), options));
}

int64_t Generator::most_text_tokens() const {
  return next_.has_value() ? KeptTokens(first_.plan()) : most_prompt_tokens();
}

absl::Status Generator::Check(absl::Span<const GenerateRequest> requests) const {
  const int64_t vocab = first_.plan().vocab;
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
    if (tokens < 1 || tokens > most_prompt_tokens()) {
      add(place, "a prompt of ", tokens, " tokens; the plan takes 1 to ", most_prompt_tokens());
    }
    const auto outside = [&](int32_t token) { return token < 0 || (vocab > 0 && token >= vocab); };
    const auto bad = std::find_if(request.prompt.begin(), request.prompt.end(), outside);
    if (bad != request.prompt.end()) {
      add(place, "token ", *bad, " is none of the model's ", vocab);
    }
    for (const Diagnostic& violation : CheckSampling(request.sampling)) add(place, violation.text);
  }
  return wrong.ToStatus();
}

void Generator::GiveAll(absl::Span<const Text> texts) {
  const absl::Span<int64_t> tokens = first_.Integers(kTokensInput);
  const absl::Span<float> rows = first_.Reals(kRowInput);
  const size_t room = static_cast<size_t>(most_prompt_tokens());
  std::fill(tokens.begin(), tokens.end(), 0);
  std::fill(rows.begin(), rows.end(), 0.0f);
  for (size_t r = 0; r < texts.size(); ++r) {
    const std::vector<int32_t>& text = texts[r].tokens;
    const size_t given = std::min(text.size(), room);  // an ended one may have one too many
    std::copy_n(text.begin(), given, tokens.begin() + static_cast<int64_t>(r * room));
    rows[r * room + given - 1] = 1;
  }
}

// Samples without a request stand at the first place, and see it.
void Generator::GiveLast(absl::Span<const Text> texts) {
  const absl::Span<int64_t> tokens = next_->Integers(kTokensInput);
  const absl::Span<int64_t> places = next_->Integers(kPlaceInput);
  const absl::Span<float> rows = next_->Reals(kRowInput);
  std::fill(rows.begin(), rows.end(), 1.0f);
  const absl::Span<int64_t> sees = next_->Integers(kSeesInput);
  std::fill(sees.begin(), sees.end(), 1);
  const int64_t last = most_text_tokens() - 1;
  for (size_t r = 0; r < places.size(); ++r) {
    const bool given = r < texts.size();
    places[r] = given ? std::min(static_cast<int64_t>(texts[r].tokens.size()) - 1, last) : 0;
    tokens[r] = given ? texts[r].tokens[static_cast<size_t>(places[r])] : 0;
  }
  for (const std::string& name : next_->Names()) {
    const absl::optional<int64_t> window = WindowOfSeen(name);
    if (!window.has_value()) continue;
    const absl::Span<int64_t> seen = next_->Integers(name);
    const size_t width = seen.size() / places.size();
    for (size_t r = 0; r < places.size(); ++r) {
      SetSeen(places[r], *window, seen.subspan(r * width, width));
    }
  }
}

absl::StatusOr<std::vector<float>> Generator::Step(StepTensors& tensors) {
  executor_->ChangeSteps(tensors.plan());
  StepInput step;
  step.data = tensors.Data();
  MGC_RETURN_IF_ERROR(executor_->Run(step));
  return ReadResult(*executor_, kLogitsResult);
}

// Chooses the next token of each text that goes on.
absl::Status Generator::Take(const std::vector<float>& logits,
                             absl::Span<const GenerateRequest> requests,
                             const TokenFunction& on_token, std::vector<Text>* texts,
                             std::vector<GeneratedText>* generated) const {
  const size_t vocab = logits.size() / static_cast<size_t>(most_requests());
  const size_t chosen =
      vocabulary_ == 0 ? vocab : std::min(vocab, static_cast<size_t>(vocabulary_));
  for (size_t r = 0; r < requests.size(); ++r) {
    Text& text = (*texts)[r];
    if (text.ended) continue;
    const int64_t known = static_cast<int64_t>(text.tokens.size());
    const int64_t next = ChooseToken(absl::MakeConstSpan(logits).subspan(r * vocab, chosen),
                                     requests[r].sampling, known);
    if (next < 0) {
      return absl::OutOfRangeError(
          absl::StrCat("request ", r, ": logits behind token ", known, " are not all numbers"));
    }
    const int32_t token = static_cast<int32_t>(next);
    GeneratedText& made = (*generated)[r];
    text.tokens.push_back(token);
    made.tokens.push_back(token);
    if (on_token) on_token(static_cast<int64_t>(r), token);
    const bool stops =
        std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
    const bool enough = static_cast<int64_t>(made.tokens.size()) == requests[r].most_tokens;
    text.ended = stops || enough || known == most_text_tokens();
    made.end = stops    ? GenerateEnd::kEndToken
               : enough ? GenerateEnd::kMostTokens
                        : GenerateEnd::kFull;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GeneratedText>> Generator::Run(
    absl::Span<const GenerateRequest> requests, const TokenFunction& on_token) {
  MGC_RETURN_IF_ERROR(Check(requests));
  std::vector<Text> texts;
  for (const GenerateRequest& request : requests) {
    texts.push_back({request.prompt, request.most_tokens <= 0});
  }
  std::vector<GeneratedText> generated(requests.size());
  times_ = {};
  const auto goes_on = [](const Text& text) { return !text.ended; };
  for (bool is_first = true; std::any_of(texts.begin(), texts.end(), goes_on); is_first = false) {
    const int64_t begun = NowNs();
    const bool by_token = next_.has_value() && !is_first;
    by_token ? GiveLast(texts) : GiveAll(texts);
    MGC_ASSIGN_OR_RETURN(const std::vector<float> logits, Step(by_token ? *next_ : first_));
    MGC_RETURN_IF_ERROR(Take(logits, requests, on_token, &texts, &generated));
    (is_first ? times_.prompt_ns : times_.tokens_ns) += NowNs() - begun;
    times_.steps += is_first ? 0 : 1;
  }
  return generated;
}

}  // namespace mgc
