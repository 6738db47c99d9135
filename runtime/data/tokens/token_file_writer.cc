#include "runtime/data/tokens/token_file_writer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/random.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 22;
constexpr int64_t kLengthBytes = 4;
constexpr int64_t kOffsetBytes = 8;

std::string HashOf(absl::string_view bytes) {
  return absl::StrCat(absl::Hex(StreamOf(bytes), absl::kZeroPad16));
}

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

absl::Status TokenFileWriter::GoOnAt(int64_t offset) {
  bin_->GoOnAt(offset);
  return partial_->Resize(offset);
}

absl::StatusOr<std::unique_ptr<TokenFileWriter>> TokenFileWriter::Create(const std::string& prefix,
                                                                         TokenFormat format,
                                                                         int64_t vocabulary,
                                                                         absl::string_view mark) {
  const absl::optional<TokenType> type = TypeFor(format, vocabulary);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("files of ", NameOf(format), " hold ids below ",
                                                   format == TokenFormat::kBytes ? 256 : 65536,
                                                   ", and the vocabulary has ", vocabulary));
  }
  // A device or a pipe keeps nothing.
  std::error_code error;
  const std::string path = prefix + ".bin";
  const bool special =
      std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  if (special) mark = "";
  std::unique_ptr<TokenFileWriter> writer(new TokenFileWriter(prefix, format, *type, mark));
  if (!mark.empty()) {
    MGC_ASSIGN_OR_RETURN(writer->partial_, PartialFile::Open(writer->path_));
  }
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> bin,
                       mark.empty() ? SharedFile::Create(writer->path_, 0)
                                    : SharedFile::Open(writer->partial_->name(), writer->path_));
  writer->bin_.emplace(std::move(bin));
  if (format == TokenFormat::kMegatron) {
    MGC_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> idx, SharedFile::Create(prefix + ".idx", 0));
    writer->idx_.emplace(std::move(idx));
  }
  if (!mark.empty()) MGC_RETURN_IF_ERROR(writer->GoOn());
  if (format == TokenFormat::kLlmC && writer->saved_source_.empty()) {
    // The number of tokens is put in at the end.
    MGC_RETURN_IF_ERROR(writer->bin_->Append(LlmCHeader(*type, 0)));
  }
  return writer;
}

int64_t TokenFileWriter::TokensBegin() const {
  return format_ == TokenFormat::kLlmC ? kLlmCHeaderBytes : 0;
}

// Takes over what is saved, or begins anew.
absl::Status TokenFileWriter::GoOn() {
  MGC_ASSIGN_OR_RETURN(const bool goes_on, ReadSaved());
  partial_->Keep(goes_on);
  if (goes_on) return GoOnAt(TokensBegin() + tokens_ * SizeOf(type_));
  lengths_.clear();
  tokens_ = documents_ = 0;
  saved_source_.clear();
  std::remove(SavedPath().c_str());
  return GoOnAt(0);
}

// A line with the mark, a line with tokens, documents, source and a hash of all, and the lengths.
absl::StatusOr<bool> TokenFileWriter::ReadSaved() {
  const absl::StatusOr<std::string> content = ReadFile(SavedPath());
  if (!content.ok()) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(*content, absl::MaxSplits('\n', 2));
  if (parts.size() != 3 || parts[0] != mark_) return false;
  const std::vector<absl::string_view> words = absl::StrSplit(parts[1], ' ');
  if (words.size() != 4 || !absl::SimpleAtoi(words[0], &tokens_) ||
      !absl::SimpleAtoi(words[1], &documents_) || words[3] != HashOf(parts[2])) {
    return false;
  }
  saved_source_ = std::string(words[2]);
  lengths_ = std::string(parts[2]);
  const auto lengths = static_cast<int64_t>(lengths_.size()) / kLengthBytes;
  if (format_ == TokenFormat::kMegatron && lengths != documents_) return false;
  MGC_ASSIGN_OR_RETURN(const int64_t bytes, partial_->Size());
  return tokens_ >= 0 && documents_ > 0 && bytes / SizeOf(type_) >= tokens_ &&
         bytes >= TokensBegin() + tokens_ * SizeOf(type_);
}

absl::Status TokenFileWriter::Save(absl::string_view source) {
  MGC_CHECK(!mark_.empty());
  MGC_RETURN_IF_ERROR(bin_->Flush());
  MGC_RETURN_IF_ERROR(bin_->file().Sync());
  partial_->Keep(true);
  return WriteFileAtomically(SavedPath(),
                             absl::StrCat(mark_, "\n", tokens_, " ", documents_, " ", source, " ",
                                          HashOf(lengths_), "\n", lengths_));
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
  MGC_RETURN_IF_ERROR(partial_.has_value() ? partial_->Publish() : bin_->file().Publish());
  if (idx_.has_value()) MGC_RETURN_IF_ERROR(idx_->file().Publish());
  if (!mark_.empty()) std::remove(SavedPath().c_str());
  return absl::OkStatus();
}

}  // namespace mgc
