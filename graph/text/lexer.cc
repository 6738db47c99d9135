#include "graph/text/lexer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"

namespace mgc {
namespace {

constexpr absl::string_view kMarks = "()[]{}<>,:;=*+-/^%?!|&";
// A word longer than this is shown cut in messages.
constexpr size_t kShownBytes = 40;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsNameByte(char c) { return IsNameStart(c) || IsDigit(c) || c == '.'; }
bool IsValueByte(char c) { return IsNameByte(c) || c == '/'; }

bool IsBareName(absl::string_view name) {
  return !name.empty() && IsNameStart(name[0]) && std::all_of(name.begin(), name.end(), IsNameByte);
}

// `/` must not begin a comment or touch one.
bool IsBareValue(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsValueByte) &&
         name.find("//") == absl::string_view::npos && name.back() != '/';
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Bytes of the number that `text` begins with, 0 if it is part of a longer word.
size_t NumberLength(absl::string_view text, bool* is_real) {
  const auto at = [&](size_t i) { return i < text.size() ? text[i] : '\0'; };
  size_t i = at(0) == '-' ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = i;
    while (IsDigit(at(i))) ++i;
    return i > begin;
  };
  digits();
  if (at(i) == '.' && IsDigit(at(i + 1))) {
    *is_real = true;
    ++i;
    digits();
  }
  if (at(i) == 'e' || at(i) == 'E') {
    const size_t mark = i;
    i += at(i + 1) == '-' || at(i + 1) == '+' ? 2 : 1;
    if (digits()) {
      *is_real = true;
    } else {
      i = mark;
    }
  }
  return IsNameByte(at(i)) ? 0 : i;
}

class Lexer {
 public:
  Lexer(absl::string_view text, FileDiagnostics* diagnostics)
      : text_(text), diagnostics_(diagnostics) {}

  std::vector<Token> Run() {
    while (SkipBlanks()) ReadToken();
    Begin(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  TextPlace Place() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  void Error(absl::string_view message) { diagnostics_->Add(Place(), "text_c1", message); }

  // Moves to the next word; false at the end.
  bool SkipBlanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++at_;
        ++line_;
        line_start_ = at_;
        starts_line_ = true;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && Peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return true;
      }
    }
    return false;
  }

  Token& Begin(TokenKind kind) {
    Token token;
    token.kind = kind;
    token.place = Place();
    token.starts_line = starts_line_;
    starts_line_ = false;
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  bool BehindNumber() const {
    if (tokens_.empty()) return false;
    const Token& last = tokens_.back();
    return last.kind == TokenKind::kInt && last_end_ == at_;
  }

  void ReadToken() {
    const char c = Peek();
    const bool minus_number = c == '-' && (IsDigit(Peek(1)) || text_.substr(at_, 4) == "-inf");
    if (c == '"') {
      Token& token = Begin(TokenKind::kString);
      token.text = ReadString();
    } else if ((c == '%' && !BehindNumber()) || c == '@') {
      ReadPrefixed(c == '%' ? TokenKind::kValue : TokenKind::kSymbol);
    } else if (IsDigit(c) || minus_number) {
      ReadNumber();
    } else if (IsNameStart(c)) {
      ReadName();
    } else if (c == '-' && Peek(1) == '>') {
      Begin(TokenKind::kMark).text = "->";
      at_ += 2;
    } else if (c != '\0' && kMarks.find(c) != absl::string_view::npos) {
      Begin(TokenKind::kMark).text = std::string(1, c);
      ++at_;
    } else {
      Error(absl::StrCat("unexpected byte `", EscapeBytes(text_.substr(at_, 1)), "`"));
      ++at_;
    }
    last_end_ = at_;
    if (!tokens_.empty()) tokens_.back().end_column = Place().column;
  }

  template <typename Predicate>
  absl::string_view TakeWhile(Predicate predicate) {
    const size_t begin = at_;
    while (at_ < text_.size() && predicate(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void ReadName() {
    Token& token = Begin(TokenKind::kName);
    token.text = std::string(TakeWhile(IsNameByte));
    if (token.text != "inf" && token.text != "nan") return;
    token.kind = TokenKind::kReal;
    token.real = token.text == "inf" ? std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::quiet_NaN();
  }

  void ReadPrefixed(TokenKind kind) {
    Token& token = Begin(kind);
    const char prefix = Peek();
    ++at_;
    if (Peek() == '"') {
      token.text = ReadString();
      return;
    }
    while (at_ < text_.size() && (kind == TokenKind::kValue ? IsValueByte : IsNameByte)(Peek()) &&
           !(Peek() == '/' && Peek(1) == '/')) {
      token.text += text_[at_++];
    }
    if (token.text.empty()) {
      diagnostics_->Add(token.place, "text_c1",
                        absl::StrCat("no name behind `", std::string(1, prefix), "`"));
    }
  }

  void ReadNumber() {
    Token& token = Begin(TokenKind::kInt);
    bool is_real = false;
    const bool infinite = text_.substr(at_, 4) == "-inf";
    const size_t length = infinite ? 4 : NumberLength(text_.substr(at_), &is_real);
    if (length == 0) {
      token.kind = TokenKind::kName;
      token.text = std::string(1, text_[at_++]);
      token.text += std::string(TakeWhile(IsNameByte));
      if (token.text[0] == '-') {
        diagnostics_->Add(token.place, "text_c1",
                          absl::StrCat("`", EscapeBytes(token.text), "` is no number"));
      }
      return;
    }
    token.text = std::string(text_.substr(at_, length));
    at_ += length;
    const char* begin = token.text.data();
    const char* end = begin + token.text.size();
    std::errc error{};
    if (is_real || infinite) {
      token.kind = TokenKind::kReal;
      error = std::from_chars(begin, end, token.real).ec;
    } else {
      error = std::from_chars(begin, end, token.integer).ec;
      token.real = static_cast<double>(token.integer);
    }
    if (error != std::errc()) {
      diagnostics_->Add(token.place, "text_c1",
                        absl::StrCat("`", token.text.substr(0, kShownBytes),
                                     "` is outside the range of 64-bit numbers"));
    }
  }

  // Reads one escape behind a backslash.
  void ReadEscape(std::string* out) {
    const char c = Peek();
    const int high = HexDigit(Peek(1));
    const int low = HexDigit(Peek(2));
    if (c == 'x' && high >= 0 && low >= 0) {
      *out += static_cast<char>(high * 16 + low);
      at_ += 3;
    } else if (c == 'n' || c == 't' || c == '"' || c == '\\') {
      *out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      ++at_;
    } else {
      Error("unknown escape in a string; \\n, \\t, \\\", \\\\ and \\xNN exist");
    }
  }

  std::string ReadString() {
    const TextPlace begin = Place();
    std::string content;
    ++at_;
    while (at_ < text_.size() && Peek() != '\n') {
      const char c = text_[at_++];
      if (c == '"') return content;
      if (c == '\\') {
        ReadEscape(&content);
      } else {
        content += c;
      }
    }
    diagnostics_->Add(begin, "text_c1", "string without an end on its line");
    return content;
  }

  absl::string_view text_;
  FileDiagnostics* diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  size_t last_end_ = 0;  // behind the last word
  size_t line_start_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
};

std::string Shown(absl::string_view text) {
  if (text.size() <= kShownBytes) return EscapeBytes(text);
  return absl::StrCat(EscapeBytes(text.substr(0, kShownBytes)), "...");
}

}  // namespace

std::vector<Token> Lex(absl::string_view text, FileDiagnostics* diagnostics) {
  return Lexer(text, diagnostics).Run();
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the text";
    case TokenKind::kValue:
      return absl::StrCat("`%", Shown(token.text), "`");
    case TokenKind::kSymbol:
      return absl::StrCat("`@", Shown(token.text), "`");
    case TokenKind::kString:
      return absl::StrCat("the string \"", Shown(token.text), "\"");
    default:
      return absl::StrCat("`", Shown(token.text), "`");
  }
}

std::string QuotedText(absl::string_view content) {
  std::string text = "\"";
  for (unsigned char byte : content) {
    if (byte == '"' || byte == '\\') {
      text += '\\';
      text += static_cast<char>(byte);
    } else if (byte == '\n') {
      text += "\\n";
    } else if (byte == '\t') {
      text += "\\t";
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += static_cast<char>(byte);
    } else {
      absl::StrAppendFormat(&text, "\\x%02X", byte);
    }
  }
  return text + "\"";
}

std::string NameText(absl::string_view name) {
  return IsBareName(name) && name != "inf" && name != "nan" ? std::string(name) : QuotedText(name);
}

std::string ValueText(absl::string_view name) {
  return absl::StrCat("%", IsBareValue(name) ? std::string(name) : QuotedText(name));
}

std::string SymbolText(absl::string_view name) {
  return absl::StrCat("@", IsBareName(name) ? std::string(name) : QuotedText(name));
}

std::string RealText(double value) {
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (std::isnan(value)) return "nan";
  if (text.find_first_of(".ein") == std::string::npos) text += ".0";
  return text;
}

}  // namespace mgc
