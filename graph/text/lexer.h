// Words of the text form (`.mgc`), and how numbers, names and strings are written.
//
//   name      matmul, tp.0, 0SEND_F3   letters, digits, `_`, `.`; may begin with a digit if it is
//                                      no number
//   value     %layers.3.up/grad.1      `%`, then letters, digits, `_`, `.`, `/`, or a string
//   symbol    @m                       `@`, then a name or a string
//   integer   -12                      fits 64 bits
//   real      0.02, 1e-05, -inf, nan   shortest form that reads back as the same double
//   string    "a\n\"\xFF"              escapes \n \t \\ \" \xNN
//   mark      ->, or one of ( ) [ ] { } < > , : ; = * + - / ^ % ? ! | &
//
// `%` right behind a number is a mark, as in `vocab=257%128`. Comments run from `//` to the end of
// the line. Newlines only end comments.

#ifndef MGC_GRAPH_TEXT_LEXER_H_
#define MGC_GRAPH_TEXT_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"

namespace mgc {

enum class TokenKind : uint8_t { kEnd, kName, kValue, kSymbol, kInt, kReal, kString, kMark };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  TextPlace place;
  int end_column = 1;        // behind its last byte; words do not span lines
  bool starts_line = false;  // the first word of its line
  // Name without its `%` or `@`, content of a string, a mark; for numbers as written.
  std::string text;
  int64_t integer = 0;
  double real = 0;  // also set for integers
};

// All words of `text`, the last of kind kEnd. Bytes that begin no word are reported (text_c1) and
// skipped.
std::vector<Token> Lex(absl::string_view text, FileDiagnostics* diagnostics);

// `token` for a message: `name`, "end of the text", ...
std::string Describe(const Token& token);

// Texts that Lex reads back as one word of the same content.
std::string QuotedText(absl::string_view content);  // "..."
std::string NameText(absl::string_view name);       // bare, or quoted where it must be
std::string ValueText(absl::string_view name);      // %name
std::string SymbolText(absl::string_view name);     // @name
std::string RealText(double value);                 // never reads as an integer

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_LEXER_H_
