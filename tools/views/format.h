// Numbers and tables for people.

#ifndef MGC_TOOLS_VIEWS_FORMAT_H_
#define MGC_TOOLS_VIEWS_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mgc {

// `950 ns`, `1.25 us`, `12.3 ms`, `2.00 s`.
std::string DurationText(int64_t nanoseconds);

// Rows in columns two blanks apart, as wide as their widest cell. The first row is the heading.
// Columns flagged in `right` are aligned to the right.
std::string TableText(const std::vector<std::vector<std::string>>& rows,
                      const std::vector<bool>& right);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_FORMAT_H_
