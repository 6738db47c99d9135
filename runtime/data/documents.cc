#include "runtime/data/documents.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 16;  // tokens of a read

}  // namespace

DocumentReader::DocumentReader(const TokenDataset& text)
    : end_(text.ends()->token), seq_length_(text.seq_length()), parts_(text.Parts()) {}

absl::StatusOr<bool> DocumentReader::Fill() {
  if (in_buffer_ < buffer_.size()) return true;
  const TokenPart& part = parts_[part_];
  const int64_t left = part.end - part.begin - next_;
  buffer_.resize(static_cast<size_t>(std::min(left, kAtOnce)));
  in_buffer_ = 0;
  MGC_RETURN_IF_ERROR(
      part.file->Read(part.begin + next_, /*vocabulary=*/0, absl::MakeSpan(buffer_)));
  next_ += static_cast<int64_t>(buffer_.size());
  return !buffer_.empty();
}

absl::StatusOr<std::vector<int32_t>> DocumentReader::ReadNext() {
  std::vector<int32_t> tokens;
  for (; part_ < parts_.size(); ++part_, next_ = 0) {
    for (;;) {
      MGC_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) break;
      const auto from = buffer_.begin() + static_cast<int64_t>(in_buffer_);
      const auto end = std::find(from, buffer_.end(), end_);
      const bool ends = end != buffer_.end();
      tokens.insert(tokens.end(), from, ends ? end + 1 : end);
      in_buffer_ = static_cast<size_t>(end - buffer_.begin()) + (ends ? 1 : 0);
      if (ends) return tokens;
    }
    if (tokens.empty()) continue;
    ++part_;
    next_ = 0;
    return tokens;
  }
  return tokens;
}

absl::StatusOr<absl::optional<Document>> DocumentReader::Next() {
  for (;;) {
    MGC_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, ReadNext());
    if (tokens.empty()) return absl::optional<Document>();
    const int64_t number = number_++;
    const auto targets = static_cast<int64_t>(tokens.size()) - 1;
    if (targets < 1) continue;
    const int64_t samples = (targets + seq_length_ - 1) / seq_length_;
    tokens.resize(static_cast<size_t>(samples * seq_length_ + 1), end_);
    std::shared_ptr<const TokenFile> file =
        TokenFile::FromTokens(tokens, absl::StrCat("document ", number));
    const int64_t size = file->tokens();
    MGC_ASSIGN_OR_RETURN(TokenDataset text,
                         TokenDataset::Create({{{{std::move(file), 0, size}}}}, seq_length_));
    text.EndDocumentsWith({end_, /*mask_loss=*/true});
    return absl::optional<Document>({number, std::move(text)});
  }
}

}  // namespace mgc
