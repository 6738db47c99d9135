#include "runtime/data/tokens/token_file_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 22;
constexpr int64_t kLengthBytes = 4;
constexpr int64_t kOffsetBytes = 8;

std::string LlmCHeader(TokenType type, int64_t tokens) {
  std::string header;
  for (const LlmCKind& kind : LlmCKinds()) {
    if (kind.type != type) continue;
    AppendNumber(static_cast<uint64_t>(kind.magic), 4, &header);
    AppendNumber(static_cast<uint64_t>(kind.version), 4, &header);
  }
  AppendNumber(static_cast<uint64_t>(tokens), 4, &header);
  header.resize(static_cast<size_t>(kLlmCHeaderBytes));
  return header;
}

}  // namespace

absl::Status TokenFileWriter::Appender::Append(absl::string_view bytes) {
  pending_.append(bytes.data(), bytes.size());
  return FlushIfFull();
}

absl::Status TokenFileWriter::Appender::AppendNumber(uint64_t number, int64_t size) {
  mgc::AppendNumber(number, size, &pending_);
  return FlushIfFull();
}

absl::Status TokenFileWriter::Appender::FlushIfFull() {
  return pending_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status TokenFileWriter::Appender::Flush() {
  MGC_RETURN_IF_ERROR(file_->Write(written_, pending_));
  written_ += static_cast<int64_t>(pending_.size());
  pending_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TokenFileWriter>> TokenFileWriter::Create(const std::string& prefix,
                                                                         TokenFormat format,
                                                                         int64_t vocabulary) {
  const absl::optional<TokenType> type = TypeFor(format, vocabulary);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("files of ", NameOf(format), " hold ids below ",
                                                   format == TokenFormat::kBytes ? 256 : 65536,
                                                   ", and the vocabulary has ", vocabulary));
  }
  std::unique_ptr<TokenFileWriter> writer(new TokenFileWriter(prefix + ".bin", format, *type));
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> bin, SharedFile::Create(writer->path_, 0));
  writer->bin_.emplace(std::move(bin));
  if (format == TokenFormat::kMegatron) {
    MGC_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> idx, SharedFile::Create(prefix + ".idx", 0));
    writer->idx_.emplace(std::move(idx));
  }
  if (format == TokenFormat::kLlmC) {  // the number of tokens is put in at the end
    MGC_RETURN_IF_ERROR(writer->bin_->Append(LlmCHeader(*type, 0)));
  }
  return writer;
}

absl::Status TokenFileWriter::Append(absl::Span<const int32_t> document) {
  const auto count = static_cast<int64_t>(document.size());
  if (format_ == TokenFormat::kLlmC && tokens_ + count > kMaxLlmCTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(path_), ": more than ", kMaxLlmCTokens,
                     " tokens, the most that a file of llm.c can count; write several files"));
  }
  for (const int32_t token : document) {
    MGC_RETURN_IF_ERROR(bin_->AppendNumber(static_cast<uint64_t>(token), SizeOf(type_)));
  }
  if (idx_.has_value()) AppendNumber(static_cast<uint64_t>(count), kLengthBytes, &lengths_);
  tokens_ += count;
  ++documents_;
  return absl::OkStatus();
}

// Every document is one sequence.
absl::Status TokenFileWriter::WriteIdx() {
  Appender& out = *idx_;
  MGC_RETURN_IF_ERROR(out.Append(kIdxMagic));
  MGC_RETURN_IF_ERROR(out.AppendNumber(kIdxVersion, 8));
  MGC_RETURN_IF_ERROR(out.AppendNumber(static_cast<uint64_t>(IdxCodeOf(type_)), 1));
  MGC_RETURN_IF_ERROR(out.AppendNumber(static_cast<uint64_t>(documents_), 8));
  MGC_RETURN_IF_ERROR(out.AppendNumber(static_cast<uint64_t>(documents_ + 1), 8));
  MGC_RETURN_IF_ERROR(out.Append(lengths_));
  uint64_t offset = 0;
  for (int64_t document = 0; document < documents_; ++document) {
    MGC_RETURN_IF_ERROR(out.AppendNumber(offset, kOffsetBytes));
    offset += NumberAt(lengths_.data() + document * kLengthBytes, kLengthBytes) *
              static_cast<uint64_t>(SizeOf(type_));
  }
  for (int64_t entry = 0; entry <= documents_; ++entry) {
    MGC_RETURN_IF_ERROR(out.AppendNumber(static_cast<uint64_t>(entry), kOffsetBytes));
  }
  return out.Flush();
}

absl::Status TokenFileWriter::Finish() {
  MGC_RETURN_IF_ERROR(bin_->Flush());
  if (format_ == TokenFormat::kLlmC) {
    MGC_RETURN_IF_ERROR(bin_->file().Write(0, LlmCHeader(type_, tokens_)));
  }
  MGC_RETURN_IF_ERROR(bin_->file().Sync());
  if (idx_.has_value()) {
    MGC_RETURN_IF_ERROR(WriteIdx());
    MGC_RETURN_IF_ERROR(idx_->file().Sync());
  }
  MGC_RETURN_IF_ERROR(bin_->file().Publish());
  return idx_.has_value() ? idx_->file().Publish() : absl::OkStatus();
}

}  // namespace mgc
