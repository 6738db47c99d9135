#include "tools/views/format.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mgc {

std::string DurationText(int64_t nanoseconds) {
  const double ns = static_cast<double>(nanoseconds);
  if (nanoseconds < 1000) return absl::StrCat(nanoseconds, " ns");
  if (ns < 1e6) return absl::StrFormat("%.3g us", ns / 1e3);
  if (ns < 1e9) return absl::StrFormat("%.3g ms", ns / 1e6);
  return absl::StrFormat("%.2f s", ns / 1e9);
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
