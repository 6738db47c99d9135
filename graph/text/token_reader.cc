#include "graph/text/token_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace mgc {

TokenReader::TokenReader(absl::string_view text, FileDiagnostics* diagnostics)
    : diagnostics_(diagnostics), tokens_(Lex(text, diagnostics)) {}

const Token& TokenReader::Peek(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool TokenReader::At(absl::string_view word) const {
  const Token& token = Peek();
  return (token.kind == TokenKind::kMark || token.kind == TokenKind::kName) && token.text == word;
}

const Token& TokenReader::Next() {
  const Token& token = Peek();
  if (!AtEnd()) ++at_;
  return token;
}

bool TokenReader::Accept(absl::string_view word) {
  if (!At(word)) return false;
  Next();
  return true;
}

bool TokenReader::Fail(absl::string_view message, absl::string_view label) {
  diagnostics_->Add(place(), label, message);
  return false;
}

bool TokenReader::FailExpecting(absl::string_view what) {
  return Fail(absl::StrCat("expected ", what, ", found ", Describe(Peek())));
}

bool TokenReader::FailMissing(absl::string_view what) {
  if (at_ == 0 || !Peek().starts_line) return FailExpecting(what);
  const Token& last = tokens_[at_ - 1];
  diagnostics_->Add({last.place.line, last.end_column}, "text_c2",
                    absl::StrCat("expected ", what, ", found the end of the line"));
  return false;
}

bool TokenReader::Expect(absl::string_view word) {
  return Accept(word) || FailMissing(absl::StrCat("`", word, "`"));
}

bool TokenReader::ExpectText(TokenKind kind, absl::string_view what, std::string* out) {
  if (Peek().kind != kind) return FailMissing(what);
  *out = Next().text;
  return true;
}

bool TokenReader::ExpectName(absl::string_view what, std::string* out) {
  if (Peek().kind == TokenKind::kString) return ExpectString(what, out);
  return ExpectText(TokenKind::kName, what, out);
}

bool TokenReader::ExpectString(absl::string_view what, std::string* out) {
  return ExpectText(TokenKind::kString, what, out);
}

bool TokenReader::ExpectValue(std::string* out) {
  return ExpectText(TokenKind::kValue, "a value", out);
}

bool TokenReader::ExpectSymbol(absl::string_view what, std::string* out) {
  return ExpectText(TokenKind::kSymbol, what, out);
}

bool TokenReader::ExpectReal(absl::string_view what, double* out) {
  if (Peek().kind != TokenKind::kInt && Peek().kind != TokenKind::kReal) return FailMissing(what);
  *out = Next().real;
  return true;
}

bool TokenReader::ExpectInt(absl::string_view what, int64_t low, int64_t high, int64_t* out) {
  const Token& token = Peek();
  if (token.kind != TokenKind::kInt) return FailMissing(what);
  if (token.integer < low || token.integer > high) {
    return Fail(absl::StrCat(what, " must be between ", low, " and ", high, ", not ", token.text));
  }
  *out = Next().integer;
  return true;
}

void TokenReader::SkipLine(size_t begin) {
  if (at_ == begin && !AtEnd()) Next();
  while (!AtEnd() && !Peek().starts_line) Next();
}

}  // namespace mgc
