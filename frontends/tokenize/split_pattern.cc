#include "frontends/tokenize/split_pattern.h"

#include <algorithm>
#include <array>
#include <limits>

#include "frontends/tokenize/characters.h"

namespace mgc {
namespace {

constexpr absl::string_view kNames[] = {"gpt2", "llama3", "qwen2"};

constexpr absl::string_view kRegexes[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};

constexpr size_t kAny = std::numeric_limits<size_t>::max();
constexpr int32_t kLongS = 0x17f;  // folds to s

bool IsLineEnd(int32_t code_point) { return code_point == '\n' || code_point == '\r'; }

// The alternatives of the expressions, each tried at one place of the text. An end that is equal to
// its begin says that the alternative does not match.
class Matcher {
 public:
  explicit Matcher(absl::string_view text) : text_(text) {}

  CharacterClass ClassAt(size_t at) const { return ClassOf(CharacterAt(text_, at).code_point); }
  bool IsAt(size_t at, CharacterClass wanted) const {
    return at < text_.size() && ClassAt(at) == wanted;
  }
  bool IsBlankAt(size_t at) const { return at < text_.size() && text_[at] == ' '; }

  // At most `most` characters of a class.
  size_t EndOfRun(size_t begin, CharacterClass wanted, size_t most = kAny) const {
    size_t at = begin;
    for (size_t count = 0; at < text_.size() && count < most; ++count) {
      const Character character = CharacterAt(text_, at);
      if (ClassOf(character.code_point) != wanted) break;
      at += character.bytes;
    }
    return at;
  }

  size_t EndOfLineEnds(size_t begin) const {
    while (begin < text_.size() && IsLineEnd(text_[begin])) ++begin;
    return begin;
  }

  // 's, 't, 're, 've, 'm, 'll or 'd; with `fold` in either case.
  size_t EndOfContraction(size_t begin, bool fold) const {
    if (text_[begin] != '\'' || begin + 1 == text_.size()) return begin;
    const Character first = CharacterAt(text_, begin + 1);
    const int32_t c = Folded(first.code_point, fold);
    if (c == 's' || c == 't' || c == 'm' || c == 'd') return begin + 1 + first.bytes;
    const char wanted = c == 'r' || c == 'v' ? 'e' : c == 'l' ? 'l' : '\0';
    const bool matches = wanted != '\0' && begin + 2 < text_.size() &&
                         Folded(static_cast<unsigned char>(text_[begin + 2]), fold) == wanted;
    return matches ? begin + 3 : begin;
  }

  // All of a run of white space, but for its last character where a word follows: `\s+(?!\S)|\s+`.
  size_t EndOfSpace(size_t begin) const {
    const size_t end = EndOfRun(begin, CharacterClass::kSpace);
    if (end == text_.size()) return end;
    const size_t last = begin + LastCharacter(text_.substr(begin, end - begin));
    return last > begin ? last : end;
  }

  // White space up to the last line end in it.
  size_t EndOfSpaceWithLineEnd(size_t begin) const {
    const size_t end = EndOfRun(begin, CharacterClass::kSpace);
    const size_t last = text_.substr(begin, end - begin).find_last_of("\r\n");
    return last == absl::string_view::npos ? begin : begin + last + 1;
  }

 private:
  static int32_t Folded(int32_t c, bool fold) {
    if (!fold) return c;
    if (c == kLongS) return 's';
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  }

  absl::string_view text_;
};

size_t Gpt2WordEnd(const Matcher& match, size_t begin) {
  const size_t contraction = match.EndOfContraction(begin, /*fold=*/false);
  if (contraction > begin) return contraction;
  const size_t word = begin + (match.IsBlankAt(begin) ? 1 : 0);
  for (const CharacterClass wanted :
       {CharacterClass::kLetter, CharacterClass::kNumber, CharacterClass::kOther}) {
    if (match.IsAt(word, wanted)) return match.EndOfRun(word, wanted);
  }
  return match.EndOfSpace(begin);
}

size_t Llama3WordEnd(const Matcher& match, absl::string_view text, size_t begin, size_t digits) {
  const size_t contraction = match.EndOfContraction(begin, /*fold=*/true);
  if (contraction > begin) return contraction;
  const Character first = CharacterAt(text, begin);
  const CharacterClass kind = ClassOf(first.code_point);
  if (kind == CharacterClass::kLetter) return match.EndOfRun(begin, CharacterClass::kLetter);
  if (kind == CharacterClass::kNumber) {
    return match.EndOfRun(begin, CharacterClass::kNumber, digits);
  }
  const size_t second = begin + first.bytes;
  if (!IsLineEnd(first.code_point) && match.IsAt(second, CharacterClass::kLetter)) {
    return match.EndOfRun(second, CharacterClass::kLetter);
  }
  const size_t mark = match.IsBlankAt(begin) ? second : begin;
  if (match.IsAt(mark, CharacterClass::kOther)) {
    return match.EndOfLineEnds(match.EndOfRun(mark, CharacterClass::kOther));
  }
  const size_t line = match.EndOfSpaceWithLineEnd(begin);
  return line > begin ? line : match.EndOfSpace(begin);
}

}  // namespace

absl::string_view NameOf(SplitPattern pattern) { return kNames[static_cast<size_t>(pattern)]; }

absl::Span<const absl::string_view> SplitPatternNames() { return kNames; }

absl::optional<SplitPattern> SplitPatternNamed(absl::string_view name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return absl::nullopt;
  return static_cast<SplitPattern>(found - std::begin(kNames));
}

absl::string_view RegexOf(SplitPattern pattern) { return kRegexes[static_cast<size_t>(pattern)]; }

absl::optional<SplitPattern> SplitPatternOf(absl::string_view regex) {
  const auto* found = std::find(std::begin(kRegexes), std::end(kRegexes), regex);
  if (found == std::end(kRegexes)) return absl::nullopt;
  return static_cast<SplitPattern>(found - std::begin(kRegexes));
}

size_t WordEnd(SplitPattern pattern, absl::string_view text, size_t begin) {
  const Matcher match(text);
  switch (pattern) {
    case SplitPattern::kGpt2:
      return Gpt2WordEnd(match, begin);
    case SplitPattern::kLlama3:
      return Llama3WordEnd(match, text, begin, /*digits=*/3);
    case SplitPattern::kQwen2:
      return Llama3WordEnd(match, text, begin, /*digits=*/1);
  }
  return text.size();
}

}  // namespace mgc
