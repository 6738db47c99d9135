// A cursor over the words of a text, with the steps that every parser of `.mgc` texts takes. Each
// step that does not find what it expects reports where it stands and returns false.

#ifndef MGC_GRAPH_TEXT_TOKEN_READER_H_
#define MGC_GRAPH_TEXT_TOKEN_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/text/lexer.h"

namespace mgc {

class TokenReader {
 public:
  // Reads the words of `text`; `diagnostics` outlives the reader.
  TokenReader(absl::string_view text, FileDiagnostics* diagnostics);

  FileDiagnostics& diagnostics() { return *diagnostics_; }

  const Token& Peek(size_t ahead = 0) const;
  TextPlace place() const { return Peek().place; }
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  // Whether the next word is this mark or name.
  bool At(absl::string_view word) const;
  // Steps over the next word; stays at the end of the text.
  const Token& Next();
  // Steps over `word` if it is next.
  bool Accept(absl::string_view word);

  // Reports `message` (text_c2 unless `label` says otherwise) at the next word; returns false.
  bool Fail(absl::string_view message, absl::string_view label = "text_c2");
  // Reports "expected `what`, found ..." at the next word; returns false.
  bool FailExpecting(absl::string_view what);
  // As FailExpecting, but at the end of the line when the next word begins another one: for what
  // should have stood behind the last word.
  bool FailMissing(absl::string_view what);

  // Step over what is expected, or report. `what` describes it for people: "a file name".
  bool Expect(absl::string_view word);
  bool ExpectName(absl::string_view what, std::string* out);  // a name or a string
  bool ExpectString(absl::string_view what, std::string* out);
  bool ExpectValue(std::string* out);
  bool ExpectSymbol(absl::string_view what, std::string* out);
  bool ExpectReal(absl::string_view what, double* out);  // an integer too
  // An integer in [low, high].
  bool ExpectInt(absl::string_view what, int64_t low, int64_t high, int64_t* out);

  // Number of words read.
  size_t position() const { return at_; }
  // After an error in what began at position `begin`: moves to the first word of a later line than
  // the words read so far.
  void SkipLine(size_t begin);

 private:
  bool ExpectText(TokenKind kind, absl::string_view what, std::string* out);

  FileDiagnostics* diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_TOKEN_READER_H_
