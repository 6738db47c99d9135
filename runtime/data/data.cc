#include "runtime/data/data.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/diagnostic.h"
#include "graph/base/status.h"
#include "runtime/data/permutation.h"

namespace mgc {
namespace {

int64_t SamplesOf(const TokenPart& part, int64_t seq_length) {
  return (part.end - part.begin - 1) / seq_length;
}

absl::string_view UnitOf(const TokenFile& file) {
  return file.format() == TokenFormat::kBytes ? "bytes" : "tokens";
}

absl::Status CheckLengths(const std::vector<TokenSource>& sources, int64_t seq_length) {
  Diagnostics violations;
  if (seq_length < 1) {
    violations.Add("", "",
                   absl::StrCat("the sequence length must be at least 1, not ", seq_length));
    return violations.ToStatus();
  }
  for (const TokenSource& source : sources) {
    for (const TokenPart& part : source.parts) {
      const int64_t size = part.end - part.begin;
      if (size > seq_length) continue;
      violations.Add(
          "", "",
          absl::StrCat(
              part.file->name(), " is too short: it has ", size, " ", UnitOf(*part.file),
              ", and one sample of sequence length ", seq_length, " needs ", seq_length,
              " + 1; use a longer file",
              size > 1 ? absl::StrCat(" or a sequence length of at most ", size - 1) : ""));
    }
  }
  return violations.ToStatus();
}

std::vector<double> WeightsOf(const std::vector<TokenSource>& sources) {
  std::vector<double> weights;
  weights.reserve(sources.size());
  for (const TokenSource& source : sources) weights.push_back(source.weight);
  return weights;
}

TokenPart WholeOf(std::shared_ptr<const TokenFile> file) {
  const int64_t tokens = file->tokens();
  return {std::move(file), 0, tokens};
}

}  // namespace

TokenDataset::TokenDataset(std::vector<TokenSource> sources, int64_t seq_length)
    : seq_length_(seq_length) {
  if (sources.size() > 1) blend_ = std::make_shared<const Blend>(WeightsOf(sources));
  sources_.reserve(sources.size());
  for (TokenSource& source : sources) {
    Source made;
    made.parts = std::move(source.parts);
    made.first_sample.push_back(0);
    for (const TokenPart& part : made.parts) {
      made.first_sample.push_back(made.samples() + SamplesOf(part, seq_length));
    }
    sources_.push_back(std::move(made));
  }
}

absl::StatusOr<TokenDataset> TokenDataset::Create(std::vector<TokenSource> sources,
                                                  int64_t seq_length) {
  MGC_RETURN_IF_ERROR(CheckLengths(sources, seq_length));
  return TokenDataset(std::move(sources), seq_length);
}

absl::StatusOr<TokenDataset> TokenDataset::Open(const std::string& path, int64_t seq_length) {
  MGC_ASSIGN_OR_RETURN(std::shared_ptr<const TokenFile> file, TokenFile::Open(path));
  return Create({{{WholeOf(std::move(file))}}}, seq_length);
}

absl::StatusOr<TokenDataset> TokenDataset::FromBytes(std::string bytes, int64_t seq_length,
                                                     absl::string_view name) {
  return Create({{{WholeOf(TokenFile::FromBytes(std::move(bytes), name))}}}, seq_length);
}

TokenDataset TokenDataset::InOrder(const std::vector<Ordered>& files,
                                   std::shared_ptr<const MegatronBlend> blend, int64_t seq_length) {
  std::vector<TokenSource> sources;
  sources.reserve(files.size());
  for (const Ordered& file : files) {
    sources.push_back({{WholeOf(file.order->file())}, file.weight});
  }
  TokenDataset data(std::move(sources), seq_length);
  for (size_t i = 0; i < files.size(); ++i) data.sources_[i].order = files[i].order;
  data.blend_list_ = std::move(blend);
  if (data.blend_list_ != nullptr) data.blend_ = nullptr;
  return data;
}

TokenDataset TokenDataset::Shuffled(uint64_t seed) const {
  TokenDataset shuffled = *this;
  shuffled.shuffle_seed_ = seed;
  return shuffled;
}

std::vector<TokenPart> TokenDataset::Parts() const {
  std::vector<TokenPart> parts;
  for (const Source& source : sources_) {
    parts.insert(parts.end(), source.parts.begin(), source.parts.end());
  }
  return parts;
}

int64_t TokenDataset::tokens() const {
  int64_t tokens = 0;
  for (const Source& source : sources_) {
    for (const TokenPart& part : source.parts) tokens += part.end - part.begin;
  }
  return tokens;
}

int64_t TokenDataset::samples_per_epoch() const {
  if (blend_list_ != nullptr) return blend_list_->samples();
  int64_t samples = 0;
  for (const Source& source : sources_) samples += source.samples();
  return samples;
}

absl::Status TokenDataset::CheckVocabulary(int64_t vocabulary) const {
  const double share = std::min(1.0, static_cast<double>(kTokensChecked) /
                                         static_cast<double>(std::max<int64_t>(tokens(), 1)));
  Diagnostics violations;
  for (const Source& source : sources_) {
    for (const TokenPart& part : source.parts) {
      const auto most =
          static_cast<int64_t>(std::ceil(share * static_cast<double>(part.end - part.begin)));
      absl::Status status = part.file->CheckVocabulary(part.begin, part.end, vocabulary, most);
      if (status.ok()) continue;
      if (!absl::IsInvalidArgument(status)) return status;
      violations.Add("", "", std::string(status.message()));
    }
  }
  return violations.ToStatus();
}

bool TokenDataset::is_aligned() const {
  if (sources_.size() > 1 || shuffle_seed_.has_value() || is_in_order()) return false;
  const std::vector<TokenPart>& parts = sources_[0].parts;
  return std::all_of(parts.begin(), parts.end(), [this](const TokenPart& part) {
    return (part.end - part.begin - 1) % seq_length_ == 0;
  });
}

absl::StatusOr<Blended> TokenDataset::PlaceOf(int64_t sample) const {
  if (blend_list_ != nullptr) return blend_list_->At(sample % blend_list_->samples());
  return blend_ != nullptr ? blend_->At(sample) : Blended{0, sample};
}

absl::Status TokenDataset::ReadSample(int64_t sample, int64_t from, int64_t vocabulary,
                                      absl::Span<int32_t> tokens) const {
  MGC_CHECK(sample >= 0 && from >= 0 &&
            from + static_cast<int64_t>(tokens.size()) <= seq_length_ + 1)
      << "sample " << sample << ", " << tokens.size() << " tokens from " << from;
  MGC_ASSIGN_OR_RETURN(const Blended place, PlaceOf(sample));
  const Source& source = sources_[place.source];
  const int64_t epoch = place.sample / source.samples();
  int64_t in_epoch = place.sample % source.samples();
  if (source.order != nullptr) return source.order->Read(in_epoch, from, vocabulary, tokens);
  if (shuffle_seed_.has_value()) {
    const Permutation order(*shuffle_seed_, {place.source, epoch}, source.samples());
    in_epoch = order.At(in_epoch);
  }
  const auto behind =
      std::upper_bound(source.first_sample.begin(), source.first_sample.end(), in_epoch);
  const auto number = static_cast<size_t>(behind - source.first_sample.begin()) - 1;
  const TokenPart& part = source.parts[number];
  const int64_t offset = (in_epoch - source.first_sample[number]) * seq_length_;
  return part.file->Read(part.begin + offset + from, vocabulary, tokens);
}

absl::StatusOr<std::pair<TokenDataset, TokenDataset>> TokenDataset::HoldBackTail(
    int64_t tail_samples) const {
  if (sources_.size() > 1) {
    return absl::InvalidArgumentError(
        "cannot hold back samples at the end of several sources that are blended; split them");
  }
  if (is_in_order()) {
    return absl::InvalidArgumentError(
        "cannot hold back samples of Megatron-LM's order, which has all of its split; evaluate on "
        "data of its own");
  }
  std::vector<TokenPart> rest = sources_[0].parts;
  TokenPart& last = rest.back();
  const int64_t tokens = last.end - last.begin;
  // Both parts need one token more than their samples' length.
  const int64_t most = (tokens - 2) / seq_length_ - 1;
  if (tail_samples < 1 || tail_samples > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot hold back ", tail_samples, " samples of ", seq_length_, " tokens from the ", tokens,
        " ", UnitOf(*last.file), " of ", last.file->name(), ": ",
        most >= 1 ? absl::StrCat("from 1 to ", most, " are possible") : "it is too short for any"));
  }
  TokenPart tail = last;
  tail.begin = last.end - tail_samples * seq_length_ - 1;
  last.end = tail.begin;
  TokenDataset before({{std::move(rest)}}, seq_length_);
  before.shuffle_seed_ = shuffle_seed_;
  before.ends_ = ends_;
  TokenDataset behind({{{std::move(tail)}}}, seq_length_);
  behind.ends_ = ends_;
  return std::make_pair(std::move(before), std::move(behind));
}

}  // namespace mgc
