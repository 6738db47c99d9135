#include "runtime/data/feed.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/assemble.h"
#include "graph/ir/step_names.h"
#include "graph/types/sharding.h"
#include "runtime/data/token_batch.h"

namespace mgc {
namespace {

const SampleTensor* TensorOf(const StepData& step, size_t index) {
  return index < step.tensors.size() ? step.tensors[index] : nullptr;
}

bool HoldsSamplesOf(const SampleTensor& tensor, const TensorType& type) {
  if (tensor.dtype() != type.dtype || tensor.shape.size() != type.dims.size()) return false;
  for (size_t d = 1; d < type.dims.size(); ++d) {
    if (tensor.shape[d] != type.dims[d].size) return false;
  }
  return true;
}

// The tile of one sample: its dims behind the first.
class SampleTile {
 public:
  SampleTile(const Slot& slot, const Mesh& mesh, int64_t rank)
      : dims_(absl::MakeConstSpan(slot.type.dims).subspan(1)) {
    for (size_t d = 0; d < dims_.size(); ++d) {
      pieces_.push_back(PieceOf(dims_[d], slot.sharding.dims[d + 1], mesh, rank));
      room_ *= pieces_.back().room;
      whole_ &= pieces_.back().room == pieces_.back().valid;
    }
  }

  int64_t room() const { return room_; }  // elements
  bool whole() const { return whole_; }   // nothing sticks out of the sample

  // Calls run(from, to, count) for runs of elements that lie together in the sample from element
  // `from` on, and in the tile from `to` on.
  template <typename Run>
  void ForEachRun(const Run& run) const {
    Walk(0, 0, 0, run);
  }

 private:
  template <typename Run>
  void Walk(size_t dim, int64_t from, int64_t to, const Run& run) const {
    if (dim == pieces_.size()) return run(from, to, int64_t{1});
    const DimPiece& piece = pieces_[dim];
    if (dim + 1 == pieces_.size()) return run(from + piece.begin, to, piece.valid);
    int64_t from_step = 1;
    int64_t to_step = 1;
    for (size_t d = dim + 1; d < pieces_.size(); ++d) {
      from_step *= dims_[d].size;
      to_step *= pieces_[d].room;
    }
    for (int64_t i = 0; i < piece.valid; ++i) {
      Walk(dim + 1, from + (piece.begin + i) * from_step, to + i * to_step, run);
    }
  }

  absl::Span<const Dim> dims_;
  absl::InlinedVector<DimPiece, kMaxDims> pieces_;
  int64_t room_ = 1;
  bool whole_ = true;
};

void FillText(const SampleTile& tile, absl::Span<const int32_t> tokens, char* out) {
  tile.ForEachRun([&](int64_t from, int64_t to, int64_t count) {
    std::copy_n(tokens.begin() + from, count, reinterpret_cast<int64_t*>(out) + to);
  });
}

void FillTensor(const SampleTile& tile, absl::string_view sample, int64_t size, char* out) {
  tile.ForEachRun([&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(out + to * size, sample.data() + from * size, static_cast<size_t>(count * size));
  });
}

void FillOnes(const SampleTile& tile, char* out) {
  tile.ForEachRun([&](int64_t, int64_t to, int64_t count) {
    std::fill_n(reinterpret_cast<float*>(out) + to, count, 1.0f);
  });
}

// 1 for every token but those that end documents.
void FillMaskedOnes(const SampleTile& tile, absl::Span<const int32_t> tokens, int32_t end,
                    char* out) {
  tile.ForEachRun([&](int64_t from, int64_t to, int64_t count) {
    std::transform(tokens.begin() + from, tokens.begin() + from + count,
                   reinterpret_cast<float*>(out) + to,
                   [end](int32_t token) { return token == end ? 0.0f : 1.0f; });
  });
}

// Of each token how many documents have ended before it, or its place in its document. `numbers`
// may be where the tokens are.
void NumberTokens(absl::Span<const int32_t> tokens, int32_t end, DataFeed feed,
                  absl::Span<int32_t> numbers) {
  int32_t ended = 0;
  int32_t place = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool ends = tokens[i] == end;
    numbers[i] = feed == DataFeed::kPositions ? place : ended;
    ended += ends ? 1 : 0;
    place = ends ? 0 : place + 1;
  }
}

bool MasksEnds(const StepData& step) {
  return step.data != nullptr && step.data->ends().has_value() && step.data->ends()->mask_loss;
}

// What a text gives an input for `sample`: `tokens` of them, below `entries` if that is not 0; in
// the step's batch, or else read into `scratch`.
absl::StatusOr<absl::Span<const int32_t>> ReadText(const StepData& step, DataFeed feed,
                                                   int64_t entries, int64_t sample,
                                                   absl::Span<int32_t> scratch) {
  const size_t from = feed == DataFeed::kTargets ? 1 : 0;
  const size_t tokens = scratch.size() - 1;
  const auto is_good = [entries](int32_t token) { return entries == 0 || token < entries; };
  absl::Span<const int32_t> row;
  if (step.batch != nullptr) row = step.batch->Row(sample - step.first_sample);
  if (!row.empty()) row = row.subspan(from, tokens);
  if (!row.empty() && std::all_of(row.begin(), row.end(), is_good)) return row;
  scratch = scratch.subspan(0, tokens);
  MGC_RETURN_IF_ERROR(
      step.data->ReadSample(SampleOf(step, sample), static_cast<int64_t>(from), entries, scratch));
  return scratch;
}

// Fills in what a text gives an input for `sample`.
absl::Status FillFromText(const SampleTile& tile, const StepData& step, DataFeed feed,
                          int64_t entries, int64_t sample, absl::Span<int32_t> scratch, char* out) {
  const bool is_made = feed == DataFeed::kOnes || NeedsDocuments(feed);  // of the tokens
  MGC_ASSIGN_OR_RETURN(
      absl::Span<const int32_t> text,
      ReadText(step, is_made ? DataFeed::kTokens : feed, is_made ? 0 : entries, sample, scratch));
  if (feed == DataFeed::kOnes) {
    FillMaskedOnes(tile, text, step.data->ends()->token, out);
    return absl::OkStatus();
  }
  if (is_made) {
    const absl::Span<int32_t> numbers = scratch.subspan(0, text.size());
    NumberTokens(text, step.data->ends()->token, feed, numbers);
    text = numbers;
  }
  FillText(tile, text, out);
  return absl::OkStatus();
}

}  // namespace

int64_t SamplesPerEpoch(const StepData& step) {
  if (step.data != nullptr) return step.data->samples_per_epoch();
  int64_t samples = 0;
  for (const SampleTensor* tensor : step.tensors) {
    if (tensor == nullptr) continue;
    samples = samples == 0 ? tensor->samples() : std::min(samples, tensor->samples());
  }
  return samples;
}

absl::Status CheckFed(const Plan& plan, absl::Span<const DataInput> inputs, const StepData& step) {
  Diagnostics violations;
  const int64_t epoch = SamplesPerEpoch(step);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DataInput& input = inputs[i];
    const auto require = [&](bool holds, absl::string_view why) {
      if (holds) return;
      violations.Add(
          "", "",
          absl::StrCat("data input `", EscapeBytes(input.name), "` ", input.type.ToString(), why));
    };
    if (const SampleTensor* tensor = TensorOf(step, i)) {
      if (!HoldsSamplesOf(*tensor, input.type) || tensor->samples() < epoch) {
        require(false, absl::StrCat(" is given ", ToString(*tensor), " for the ", epoch,
                                    " samples of an epoch"));
      }
      continue;
    }
    const DataFeed feed = FeedOf(input.name, input.type, plan.seq_length);
    require(feed != DataFeed::kNone, " is given no tensor");
    if (!IsOfText(feed)) continue;
    require(step.data != nullptr, " is given neither a text nor a tensor");
    require(step.data == nullptr || step.data->seq_length() == plan.seq_length,
            " is given a text cut into samples of another length");
    require(step.data == nullptr || !NeedsDocuments(feed) || step.data->ends().has_value(),
            " is given a text of which nobody says what ends documents");
  }
  return violations.ToStatus();
}

absl::Status FillData(absl::Span<const DataInput> inputs, int index, const Slot& slot,
                      const Mesh& mesh, int64_t rank, const StepData& step, int64_t row_sample,
                      absl::Span<int32_t> scratch, char* out) {
  const DataInput& input = inputs[static_cast<size_t>(index)];
  const SampleTensor* tensor = TensorOf(step, static_cast<size_t>(index));
  const int64_t tokens = static_cast<int64_t>(scratch.size()) - 1;
  const DataFeed feed = FeedOf(input.name, input.type, tokens);
  const DimPiece rows = PieceOf(slot.type.dims[0], slot.sharding.dims[0], mesh, rank);
  const SampleTile tile(slot, mesh, rank);
  const int64_t size = SizeOf(slot.type.dtype);
  const int64_t epoch = std::max<int64_t>(SamplesPerEpoch(step), 1);
  for (int64_t row = 0; row < rows.valid; ++row) {
    const int64_t sample = row_sample + rows.begin + row;
    const bool counts = sample < step.end_sample;
    char* to = out + row * tile.room() * size;
    const bool is_weight = feed == DataFeed::kOnes;
    if (!tile.whole() || (is_weight && !counts)) {
      std::memset(to, 0, static_cast<size_t>(tile.room() * size));
    }
    if (is_weight && !counts) continue;
    if (tensor != nullptr) {
      FillTensor(tile, tensor->Sample(SampleOf(step, sample) % epoch), size, to);
    } else if (is_weight && !MasksEnds(step)) {
      FillOnes(tile, to);
    } else {
      MGC_RETURN_IF_ERROR(FillFromText(tile, step, feed, input.entries, sample, scratch, to));
    }
  }
  return absl::OkStatus();
}

}  // namespace mgc
