#include "tools/views/series.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

// A line in pieces: texts[0] numbers[0] texts[1] numbers[1] ... texts[n].
struct Pieces {
  std::vector<std::string> texts = {""};
  std::vector<int64_t> numbers;
};

Pieces PiecesOf(absl::string_view line) {
  Pieces pieces;
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && absl::ascii_isdigit(static_cast<unsigned char>(line[end]))) ++end;
    int64_t number = 0;
    if (absl::SimpleAtoi(line.substr(i, end - i), &number)) {
      pieces.numbers.push_back(number);
      pieces.texts.emplace_back();
      i = end;
    } else {
      pieces.texts.back().push_back(line[i++]);
    }
  }
  return pieces;
}

// Whether `third` goes on as `second` follows `first`.
bool GoesOn(const Pieces& first, const Pieces& second, const Pieces& third) {
  if (first.texts != second.texts || second.texts != third.texts) return false;
  for (size_t i = 0; i < first.numbers.size(); ++i) {
    if (second.numbers[i] - first.numbers[i] != third.numbers[i] - second.numbers[i]) return false;
  }
  return true;
}

// `{p}`, `{2p+1}`, `{63-p}`: a number that is `value` at line `at` and changes by `slope`.
std::string Formula(int64_t value, int64_t slope, int64_t at) {
  if (slope == 0) return absl::StrCat(value);
  const int64_t constant = value - slope * at;
  const int64_t factor = slope < 0 ? -slope : slope;
  const std::string term = absl::StrCat(factor == 1 ? "" : absl::StrCat(factor), "p");
  if (slope < 0) return absl::StrCat("{", constant, "-", term, "}");
  if (constant == 0) return absl::StrCat("{", term, "}");
  return absl::StrCat("{", term, constant > 0 ? "+" : "", constant, "}");
}

std::string RuleText(const Pieces& first, const Pieces& second, size_t at) {
  std::string text = first.texts[0];
  for (size_t i = 0; i < first.numbers.size(); ++i) {
    absl::StrAppend(
        &text,
        Formula(first.numbers[i], second.numbers[i] - first.numbers[i], static_cast<int64_t>(at)),
        first.texts[i + 1]);
  }
  return text;
}

}  // namespace

std::string SeriesText(absl::string_view name, const std::vector<std::string>& lines) {
  std::vector<Pieces> pieces;
  pieces.reserve(lines.size());
  for (const std::string& line : lines) pieces.push_back(PiecesOf(line));
  std::string text;
  for (size_t first = 0; first < lines.size();) {
    size_t end = first + 2;
    while (end < lines.size() && GoesOn(pieces[end - 2], pieces[end - 1], pieces[end])) ++end;
    if (end < first + 3) {
      absl::StrAppend(&text, name, " ", first, ": ", lines[first], "\n");
      ++first;
      continue;
    }
    absl::StrAppend(&text, name, " ", first, "-", end - 1, " (p = ", name,
                    "): ", RuleText(pieces[first], pieces[first + 1], first), "\n");
    first = end;
  }
  return text;
}

}  // namespace mgc
