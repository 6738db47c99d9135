#include "frontends/pieces/piece_tokenizer.h"

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontends/pieces/piece_library.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Normalizing may make a text three times as long, and the library counts bytes in 32 bits.
constexpr size_t kMostBytes = size_t{1} << 29;

std::string_view StandardView(absl::string_view text) { return {text.data(), text.size()}; }

class PieceEncoder : public TextEncoder {
 public:
  explicit PieceEncoder(const PieceLibrary& library) : library_(library) {}

  absl::Status AppendTokens(absl::string_view text, std::vector<TokenId>* tokens) override {
    if (text.size() > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a document of ", text.size(), " bytes; SentencePiece takes at most ",
                       kMostBytes, ": cut it, as with --documents line"));
    }
    const std::string error = library_.Encode(StandardView(text), &ids_);
    if (!error.empty()) return absl::InvalidArgumentError(absl::StrCat("SentencePiece: ", error));
    tokens->insert(tokens->end(), ids_.begin(), ids_.end());
    return absl::OkStatus();
  }

 private:
  const PieceLibrary& library_;
  std::vector<int> ids_;
};

class PieceTokenizer : public TextTokenizer {
 public:
  explicit PieceTokenizer(std::unique_ptr<PieceLibrary> library) : library_(std::move(library)) {}

  int64_t vocabulary_size() const override { return library_->size(); }
  absl::optional<TokenId> Find(absl::string_view content) const override {
    const std::optional<int> id = library_->Find(StandardView(content));
    return id.has_value() ? absl::make_optional(TokenId{*id}) : absl::nullopt;
  }
  absl::optional<TokenId> end_of_document() const override {
    const std::optional<int> id = library_->end();
    return id.has_value() ? absl::make_optional(TokenId{*id}) : absl::nullopt;
  }
  std::unique_ptr<TextEncoder> NewEncoder() const override {
    return std::make_unique<PieceEncoder>(*library_);
  }
  absl::Status Decode(absl::Span<const TokenId> tokens, std::string* text) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] >= 0 && tokens[i] < library_->size()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", i, " is ", tokens[i], ", outside the vocabulary of ", library_->size()));
    }
    std::string decoded;
    const std::string error = library_->Decode({tokens.begin(), tokens.end()}, &decoded);
    if (!error.empty()) return absl::InvalidArgumentError(absl::StrCat("SentencePiece: ", error));
    text->append(decoded);
    return absl::OkStatus();
  }
  // The blank before a text belongs to its first piece.
  bool decodes_in_parts() const override { return false; }

 private:
  std::unique_ptr<PieceLibrary> library_;
};

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

absl::optional<std::string> PieceModelAt(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return absl::EndsWith(path, ".model") ? absl::make_optional(path) : absl::nullopt;
  }
  std::string model = absl::StrCat(path, "/tokenizer.model");
  if (IsFile(absl::StrCat(path, "/tokenizer.json")) || !IsFile(model)) return absl::nullopt;
  return model;
}

absl::StatusOr<std::unique_ptr<TextTokenizer>> ReadPieceModel(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  return ParsePieceModel(content, path);
}

absl::StatusOr<std::unique_ptr<TextTokenizer>> ParsePieceModel(absl::string_view model,
                                                               absl::string_view file) {
  auto library = std::make_unique<PieceLibrary>();
  const std::string error = library->Load(StandardView(model));
  if (error.empty() && library->size() > 0 && library->size() <= kMaxTokenId) {
    return std::make_unique<PieceTokenizer>(std::move(library));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      EscapeBytes(file), " is no model of SentencePiece that can be used: ",
      error.empty() ? absl::StrCat("it has ", library->size(), " pieces") : EscapeBytes(error)));
}

}  // namespace mgc
