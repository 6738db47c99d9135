#include "tools/tokens/documents.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "frontends/tokenize/tokenizer.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Cuts what comes in pieces at a separator; without one all is one document.
class DocumentReader {
 public:
  DocumentReader(const std::string& path, const DocumentRule& rule,
                 absl::FunctionRef<absl::Status(std::string document)> take)
      : name_(EscapeBytes(path)), rule_(rule), take_(take) {
    if (rule.kind == DocumentRule::Kind::kSeparator) separator_ = rule.separator;
    if (rule.kind == DocumentRule::Kind::kLine || rule.kind == DocumentRule::Kind::kJsonLine) {
      separator_ = "\n";
    }
  }

  absl::Status Add(absl::string_view piece) {
    // A separator may lie across two pieces.
    const size_t behind = separator_.size() > 1 ? separator_.size() - 1 : 0;
    size_t from = pending_.size() - std::min(pending_.size(), behind);
    pending_.append(piece.data(), piece.size());
    size_t begin = 0;
    while (!separator_.empty()) {
      const size_t end = pending_.find(separator_, from);
      if (end == std::string::npos) break;
      MGC_RETURN_IF_ERROR(Emit(pending_.substr(begin, end - begin)));
      begin = end + separator_.size();
      from = begin;
    }
    pending_.erase(0, begin);
    return pending_.size() < kMaxTextBytes ? absl::OkStatus() : TooLong();
  }

  absl::Status Finish() { return Emit(std::move(pending_)); }

 private:
  absl::Status TooLong() const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": document ", number_, " has ", kMaxTextBytes,
                     " bytes or more, too many to be tokenized at once; cut it into several "
                     "(--documents, --separator)"));
  }

  absl::Status Emit(std::string text) {
    ++number_;
    if (rule_.kind == DocumentRule::Kind::kLine && absl::EndsWith(text, "\r")) text.pop_back();
    if (rule_.kind == DocumentRule::Kind::kJsonLine) {
      if (absl::StripAsciiWhitespace(text).empty()) return absl::OkStatus();
      MGC_ASSIGN_OR_RETURN(text, TextInJson(text));
    }
    return text.empty() ? absl::OkStatus() : take_(std::move(text));
  }

  absl::StatusOr<std::string> TextInJson(absl::string_view line) const {
    const std::string where = absl::StrCat(name_, ", line ", number_);
    absl::StatusOr<JsonValue> value = ParseJson(line, where);
    MGC_RETURN_IF_ERROR(value.status());
    const JsonValue* text = value->Find(rule_.key);
    if (text != nullptr && text->kind == JsonValue::Kind::kString) return text->text;
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": ",
        value->kind != JsonValue::Kind::kObject ? absl::StrCat("is ", KindName(value->kind))
        : text == nullptr
            ? absl::StrCat("has no `", EscapeBytes(rule_.key), "`")
            : absl::StrCat("`", EscapeBytes(rule_.key), "` is ", KindName(text->kind)),
        ", not an object with the document in a string"));
  }

  const std::string name_;
  const DocumentRule& rule_;
  const absl::FunctionRef<absl::Status(std::string document)> take_;
  std::string separator_;  // empty: none
  std::string pending_;
  int64_t number_ = 0;  // of documents, from 1; of JSON lines, of lines
};

}  // namespace

absl::Status ForEachDocument(const std::string& path, const DocumentRule& rule,
                             absl::FunctionRef<absl::Status(std::string document)> take) {
  DocumentReader reader(path, rule, take);
  MGC_RETURN_IF_ERROR(
      ReadPieces(path, [&reader](absl::string_view piece) { return reader.Add(piece); }));
  return reader.Finish();
}

}  // namespace mgc
