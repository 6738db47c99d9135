// Numbers and tables for people.

#ifndef MGC_TOOLS_VIEWS_FORMAT_H_
#define MGC_TOOLS_VIEWS_FORMAT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/types/mesh.h"

namespace mgc {

// `950 ns`, `1.25 us`, `12.3 ms`, `2.00 s`.
std::string DurationText(int64_t nanoseconds);

// `950`, `0.26 M`, `405.9 B`, `1.01 T`.
std::string CountText(int64_t count);

// Axes of more than one rank, fastest first: `tp 2, dp 4`; empty for a single rank.
std::string MeshSizesText(const Mesh& mesh);

// Ascending numbers as ranges: `0`, `0-5, 8, 10-12`; three or more that lie equally far apart, and
// two or more apart, as `0-12 by 4`.
std::string RangesText(const std::vector<int64_t>& numbers);

// Lines about numbered things, ascending: stages, classes.
using NumberedLines = std::vector<std::pair<int64_t, std::string>>;

// `stage 0: ...`, a line each; unless `all`, those that say the same are one line, at the place of
// the first: `stages 1-14: ...`. `one` and `several` are the words for the things.
std::string LinesText(absl::string_view one, absl::string_view several, const NumberedLines& lines,
                      bool all);

// Rows in columns two blanks apart, as wide as their widest cell. The first row is the heading.
// Columns flagged in `right` are aligned to the right.
std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<bool>& right);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_FORMAT_H_
