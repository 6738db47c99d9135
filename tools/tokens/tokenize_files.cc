#include "tools/tokens/tokenize_files.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/random.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Of words that are counted, between two looks at how far it has come.
constexpr int64_t kShownBytes = int64_t{4} << 20;

struct Document {
  std::string text;
  std::vector<TokenId> tokens;
  absl::Status status;
};

std::string HashText(absl::string_view before, absl::string_view text) {
  return absl::StrCat(
      absl::Hex(StreamOf(absl::StrCat(before, absl::Hex(StreamOf(text)))), absl::kZeroPad16));
}

// Gathers documents, has all workers tokenize them, and writes them in order.
class Rounds {
 public:
  Rounds(const TextTokenizer& tokenizer, const TokenizeOptions& options, TokenFileWriter* writer)
      : options_(options), writer_(writer), left_over_(writer->documents()) {
    encoders_.reserve(static_cast<size_t>(options.workers));
    for (int i = 0; i < options.workers; ++i) encoders_.push_back(tokenizer.NewEncoder());
  }

  absl::Status Add(std::string text) {
    if (writer_->keeps()) source_ = HashText(source_, text);
    if (left_over_ > 0) return PassOver(text);
    bytes_ += static_cast<int64_t>(text.size());
    documents_.push_back({std::move(text), {}, absl::OkStatus()});
    return bytes_ < options_.round_bytes * options_.workers ? absl::OkStatus() : Run();
  }

  // Tokenizes and writes what is gathered.
  absl::Status Run() {
    Encode();
    for (const Document& document : documents_) {
      MGC_RETURN_IF_ERROR(document.status);
      MGC_RETURN_IF_ERROR(writer_->Append(document.tokens));
    }
    progress_.documents += static_cast<int64_t>(documents_.size());
    progress_.bytes += bytes_;
    progress_.tokens = writer_->tokens();
    if (options_.on_progress) options_.on_progress(progress_);
    documents_.clear();
    unsaved_ += bytes_;
    bytes_ = 0;
    const bool saves = writer_->keeps() && options_.save_bytes > 0;
    if (!saves || unsaved_ < options_.save_bytes) return absl::OkStatus();
    unsaved_ = 0;
    return writer_->Save(source_);
  }

  absl::Status Finish() { return left_over_ > 0 ? IsOther() : Run(); }

 private:
  // A document that the writer has.
  absl::Status PassOver(absl::string_view text) {
    ++progress_.documents;
    progress_.bytes += static_cast<int64_t>(text.size());
    if (options_.on_progress) options_.on_progress(progress_);
    if (--left_over_ > 0) return absl::OkStatus();
    return source_ == writer_->saved_source() ? absl::OkStatus() : IsOther();
  }

  absl::Status IsOther() const {
    return absl::FailedPreconditionError(
        absl::StrCat("the texts have changed: the first ", writer_->documents(),
                     " documents are not those that an interrupted run has left in ",
                     EscapeBytes(writer_->path()), ".partial; remove that to begin anew"));
  }

  void Encode() {
    std::atomic<size_t> next{0};
    const auto work = [&](TextEncoder& encoder) {
      for (size_t i = next++; i < documents_.size(); i = next++) {
        documents_[i].status = encoder.AppendTokens(documents_[i].text, &documents_[i].tokens);
        if (options_.end_with.has_value()) documents_[i].tokens.push_back(*options_.end_with);
      }
    };
    std::vector<std::thread> others;
    others.reserve(encoders_.size() - 1);
    for (size_t i = 1; i < encoders_.size(); ++i)
      others.emplace_back(work, std::ref(*encoders_[i]));
    work(*encoders_[0]);
    for (std::thread& other : others) other.join();
  }

  const TokenizeOptions& options_;
  TokenFileWriter* const writer_;
  std::vector<std::unique_ptr<TextEncoder>> encoders_;  // of the workers
  std::vector<Document> documents_;
  int64_t bytes_ = 0;  // of their text
  int64_t unsaved_ = 0;
  int64_t left_over_;   // documents to pass over
  std::string source_;  // a hash of the documents so far
  TokenizeProgress progress_;
};

}  // namespace

absl::Status TokenizeFiles(const std::vector<std::string>& paths, const TextTokenizer& tokenizer,
                           const TokenizeOptions& options, TokenFileWriter* writer) {
  Rounds rounds(tokenizer, options, writer);
  for (const std::string& path : paths) {
    MGC_RETURN_IF_ERROR(ForEachDocument(
        path, options.rule, [&rounds](std::string text) { return rounds.Add(std::move(text)); }));
  }
  return rounds.Finish();
}

absl::Status CountWords(const std::vector<std::string>& paths, const DocumentRule& rule,
                        const OnTokenizeProgress& on_progress, WordCounts* counts) {
  TokenizeProgress progress;
  int64_t shown = 0;
  const auto take = [&](const std::string& text) {
    counts->Add(text);
    ++progress.documents;
    progress.bytes += static_cast<int64_t>(text.size());
    if (on_progress && progress.bytes - shown >= kShownBytes) {
      shown = progress.bytes;
      on_progress(progress);
    }
    return absl::OkStatus();
  };
  for (const std::string& path : paths) {
    MGC_RETURN_IF_ERROR(ForEachDocument(path, rule, take));
  }
  return absl::OkStatus();
}

absl::Status DecodeFile(const TokenFile& file, const TextTokenizer& tokenizer,
                        absl::FunctionRef<absl::Status(absl::string_view)> write) {
  constexpr int64_t kBlock = int64_t{1} << 16;
  std::vector<TokenId> tokens;
  std::string text;
  for (int64_t begin = 0, document = 0; begin < file.tokens();) {
    int64_t end = std::min(begin + kBlock, file.tokens());
    if (!tokenizer.decodes_in_parts()) {
      end = file.tokens();
      if (file.documents().has_value()) {
        MGC_ASSIGN_OR_RETURN(end, file.DocumentBegin(++document));
      }
    }
    tokens.resize(static_cast<size_t>(end - begin));
    MGC_RETURN_IF_ERROR(file.Read(begin, tokenizer.vocabulary_size(), absl::MakeSpan(tokens)));
    text.clear();
    MGC_RETURN_IF_ERROR(tokenizer.Decode(tokens, &text));
    MGC_RETURN_IF_ERROR(write(text));
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace mgc
