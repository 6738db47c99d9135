// Lines that follow a rule, as one line.

#ifndef MGC_TOOLS_VIEWS_SERIES_H_
#define MGC_TOOLS_VIEWS_SERIES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

// Line i is `name i: lines[i]`. Three or more neighbours that differ in nothing but whole numbers,
// each of which changes evenly from line to line, are one, in which such a number is a formula:
//
//   pp 0: 4 x (0F0) +1 0B0
//   pp 1: 3 x (1F0) +1 1B0    ->    pp 0-2 (p = pp): {4-p} x ({p}F0) +1 {p}B0
//   pp 2: 2 x (2F0) +1 2B0
//
// So nothing is lost. `lines` are words of schedules: without braces, numbers below 10^18.
std::string SeriesText(absl::string_view name, const std::vector<std::string>& lines);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_SERIES_H_
