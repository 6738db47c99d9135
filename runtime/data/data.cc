#include "runtime/data/data.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {

ByteDataset::ByteDataset(std::shared_ptr<const std::string> owner, absl::string_view bytes,
                         int64_t seq_length, std::string name)
    : owner_(std::move(owner)), bytes_(bytes), seq_length_(seq_length), name_(std::move(name)) {}

absl::StatusOr<ByteDataset> ByteDataset::Open(const std::string& path, int64_t seq_length) {
  std::string bytes;
  MGC_ASSIGN_OR_RETURN(bytes, ReadFile(path));
  return FromBytes(std::move(bytes), seq_length, path);
}

absl::StatusOr<ByteDataset> ByteDataset::FromBytes(std::string bytes, int64_t seq_length,
                                                   absl::string_view name) {
  if (seq_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the sequence length must be at least 1, not ", seq_length));
  }
  std::string escaped = EscapeBytes(name);
  int64_t size = static_cast<int64_t>(bytes.size());
  if (size <= seq_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        escaped, " is too short: it has ", size, " bytes, and one sample of sequence length ",
        seq_length, " needs ", seq_length, " + 1; use a longer file",
        size > 1 ? absl::StrCat(" or a sequence length of at most ", size - 1) : ""));
  }
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  absl::string_view view = *owner;
  return ByteDataset(std::move(owner), view, seq_length, std::move(escaped));
}

void ByteDataset::CopySample(int64_t sample, absl::Span<int32_t> tokens) const {
  MGC_CHECK(sample >= 0 && static_cast<int64_t>(tokens.size()) == seq_length_ + 1)
      << "sample " << sample << " into " << tokens.size() << " tokens";
  const char* from = bytes_.data() + (sample % samples_per_epoch()) * seq_length_;
  for (int64_t i = 0; i <= seq_length_; ++i) tokens[i] = static_cast<unsigned char>(from[i]);
}

absl::StatusOr<std::pair<ByteDataset, ByteDataset>> ByteDataset::HoldBackTail(
    int64_t tail_samples) const {
  // Both parts need one byte more than their samples' length.
  int64_t most = (tokens() - 2) / seq_length_ - 1;
  if (tail_samples < 1 || tail_samples > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot hold back ", tail_samples, " samples of ", seq_length_, " tokens from the ",
        tokens(), " bytes of ", name_, ": ",
        most >= 1 ? absl::StrCat("from 1 to ", most, " are possible") : "it is too short for any"));
  }
  int64_t tail_size = tail_samples * seq_length_ + 1;
  absl::string_view rest = bytes_.substr(0, tokens() - tail_size);
  absl::string_view tail = bytes_.substr(tokens() - tail_size);
  return std::make_pair(ByteDataset(owner_, rest, seq_length_, name_),
                        ByteDataset(owner_, tail, seq_length_, name_));
}

}  // namespace mgc
