#include "runtime/data/sample_set.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/plan/data_input.h"
#include "runtime/data/tokens/even_place.h"

namespace mgc {
namespace {

// Samples [begin, end) of a tensor.
SampleTensor Part(const SampleTensor& tensor, int64_t begin, int64_t end) {
  SampleTensor part;
  part.shape = tensor.shape;
  part.shape[0] = end - begin;
  std::visit(
      [&](const auto& values) {
        const int64_t per_sample = static_cast<int64_t>(values.size()) / tensor.samples();
        part.values = std::decay_t<decltype(values)>(values.begin() + begin * per_sample,
                                                     values.begin() + end * per_sample);
      },
      tensor.values);
  return part;
}

InputTensors Parts(const InputTensors& tensors, int64_t begin, int64_t end) {
  InputTensors parts(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].has_value()) parts[i] = Part(*tensors[i], begin, end);
  }
  return parts;
}

std::string HexText(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

// Of samples that lie evenly in the first epoch, as many as `most` tokens make, or all. Of blended
// ones so many in a row, for all but the first of which their source is known.
constexpr int64_t kBlendedInARow = 64;

absl::StatusOr<std::string> HashOf(const TokenDataset& text, int64_t most) {
  std::vector<int32_t> tokens(static_cast<size_t>(text.seq_length()) + 1);
  const int64_t samples = text.samples_per_epoch();
  const int64_t looks =
      std::min(samples, std::max<int64_t>(most / static_cast<int64_t>(tokens.size()), 1));
  const int64_t in_a_row = text.is_blended() ? std::min(looks, kBlendedInARow) : 1;
  uint64_t hash = 0;
  for (int64_t look = 0; look + in_a_row <= looks; look += in_a_row) {
    const int64_t first = EvenPlace(look, looks, samples);
    for (int64_t sample = first; sample < first + in_a_row; ++sample) {
      MGC_RETURN_IF_ERROR(text.ReadSample(sample, 0, /*vocabulary=*/0, absl::MakeSpan(tokens)));
      const absl::string_view bytes(reinterpret_cast<const char*>(tokens.data()),
                                    tokens.size() * sizeof(int32_t));
      hash = StreamOf(absl::StrCat(HexText(hash), HexText(StreamOf(bytes))));
    }
  }
  return HexText(hash);
}

std::string EndsText(const absl::optional<DocumentEnds>& ends) {
  if (!ends.has_value()) return "";
  return absl::StrCat(", documents end with ", ends->token,
                      ends->mask_loss ? ", behind which no target counts" : "");
}

}  // namespace

SampleSet::SampleSet(absl::optional<TokenDataset> text, InputTensors tensors)
    : text_(std::move(text)), tensors_(std::move(tensors)) {
  for (const absl::optional<SampleTensor>& tensor : tensors_) {
    given_.push_back(tensor.has_value() ? &*tensor : nullptr);
  }
}

int64_t SampleSet::samples() const { return std::max<int64_t>(SamplesPerEpoch(At(0, 0)), 1); }

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> SampleSet::Identity() const {
  std::vector<std::pair<std::string, std::string>> texts;
  if (text_.has_value()) {
    MGC_ASSIGN_OR_RETURN(const std::string hash, HashOf(*text_, kTokensLookedAt));
    texts.emplace_back(
        "text",
        absl::StrCat(text_->tokens(), " tokens in ", text_->samples_per_epoch(), " samples of ",
                     text_->seq_length(), ", hash ", hash, EndsText(text_->ends())));
  }
  for (size_t i = 0; i < given_.size(); ++i) {
    if (given_[i] == nullptr) continue;
    const SampleTensor& tensor = *given_[i];
    const absl::string_view first = tensor.Sample(0);
    const absl::string_view all(first.data(), first.size() * static_cast<size_t>(tensor.samples()));
    texts.emplace_back(absl::StrCat("input ", i),
                       absl::StrCat(ToString(tensor), ", hash ", HexText(StreamOf(all))));
  }
  return texts;
}

StepData SampleSet::At(int64_t first, int64_t end) const {
  return {text_.has_value() ? &*text_ : nullptr, first, end, given_};
}

absl::Status SampleSet::CheckAligned() const {
  const bool alone = std::all_of(given_.begin(), given_.end(),
                                 [](const SampleTensor* tensor) { return tensor == nullptr; });
  if (alone || text_->is_aligned()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "cannot hold back samples of a text and of tensors together: they are not in the same order, "
      "or some of the text's tokens lie behind its last sample; without these, or with evaluation "
      "data of its own, it can be");
}

absl::StatusOr<std::pair<SampleSet, SampleSet>> SampleSet::HoldBackTail(
    int64_t tail_samples) const {
  const int64_t all = samples();
  absl::optional<TokenDataset> rest;
  absl::optional<TokenDataset> tail;
  if (text_.has_value()) {
    MGC_RETURN_IF_ERROR(CheckAligned());
    MGC_ASSIGN_OR_RETURN(auto parts, text_->HoldBackTail(tail_samples));
    rest = std::move(parts.first);
    tail = std::move(parts.second);
  } else if (tail_samples < 1 || tail_samples >= all) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot hold back ", tail_samples, " of ", all, " samples: ",
        all > 1 ? absl::StrCat("from 1 to ", all - 1, " are possible") : "there is only one"));
  }
  const int64_t split = all - tail_samples;
  return std::make_pair(SampleSet(std::move(rest), Parts(tensors_, 0, split)),
                        SampleSet(std::move(tail), Parts(tensors_, split, all)));
}

bool LeavesOut(const Graph& model) {
  std::vector<bool> weighted(model.values().size(), false);
  for (const GraphInput& input : model.inputs()) {
    const Value& value = model.value(input.value);
    if (input.kind != InputKind::kData) continue;
    weighted[static_cast<size_t>(input.value)] =
        FeedOf(value.name, value.type, /*tokens_per_sample=*/0) == DataFeed::kOnes;
  }
  const auto depends = [&](ValueId value) { return weighted[static_cast<size_t>(value)]; };
  for (const Node& node : model.nodes()) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), depends);
    for (ValueId result : node.outputs) weighted[static_cast<size_t>(result)] = reads;
  }
  return std::all_of(model.outputs().begin(), model.outputs().end(),
                     [&](const GraphOutput& output) { return depends(output.value); });
}

int64_t SamplesToEvaluate(const Plan& plan, const SampleSet& set) {
  const int64_t samples = set.samples();
  return LeavesOut(plan.model) ? samples : samples - samples % plan.global_batch_size;
}

}  // namespace mgc
