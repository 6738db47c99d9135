#include "tools/views/format.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mgc {

std::string DurationText(int64_t nanoseconds) {
  const double ns = static_cast<double>(nanoseconds);
  if (nanoseconds < 1000) return absl::StrCat(nanoseconds, " ns");
  // Three digits round up to the next unit.
  if (ns < 999.5e3) return absl::StrFormat("%.3g us", ns / 1e3);
  if (ns < 999.5e6) return absl::StrFormat("%.3g ms", ns / 1e6);
  return absl::StrFormat("%.2f s", ns / 1e9);
}

std::string CountText(int64_t count) {
  const double number = static_cast<double>(count);
  if (count < 10000) return absl::StrCat(count);
  if (number < 1e9) return absl::StrFormat("%.2f M", number / 1e6);
  if (number < 1e12) return absl::StrFormat("%.1f B", number / 1e9);
  return absl::StrFormat("%.2f T", number / 1e12);
}

std::string MeshSizesText(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.size == 1) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", axis.name, " ", axis.size);
  }
  return text;
}

std::string RangesText(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    const int64_t step = i + 1 < numbers.size() ? numbers[i + 1] - numbers[i] : 1;
    while (last + 1 < numbers.size() && numbers[last + 1] - numbers[last] == step) ++last;
    if (step != 1 && last - i < 2) last = i;
    absl::StrAppend(&text, text.empty() ? "" : ", ", numbers[i]);
    if (last > i) absl::StrAppend(&text, "-", numbers[last]);
    if (last > i && step != 1) absl::StrAppend(&text, " by ", step);
    i = last + 1;
  }
  return text;
}

std::string LinesText(absl::string_view one, absl::string_view several, const NumberedLines& lines,
                      bool all) {
  std::vector<std::pair<std::vector<int64_t>, absl::string_view>> folds;
  for (const auto& [number, line] : lines) {
    const auto same = std::find_if(folds.begin(), folds.end(), [&line = line](const auto& fold) {
      return fold.second == line;
    });
    if (all || same == folds.end()) {
      folds.push_back({{number}, line});
    } else {
      same->first.push_back(number);
    }
  }
  std::string text;
  for (const auto& [numbers, line] : folds) {
    absl::StrAppend(&text, numbers.size() == 1 ? one : several, " ", RangesText(numbers), ": ",
                    line, "\n");
  }
  return text;
}

std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<bool>& right) {
  std::vector<size_t> widths(right.size(), 0);
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, i > 0 ? "  " : "", right[i] ? blanks : "", row[i],
                      right[i] ? "" : blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace mgc
