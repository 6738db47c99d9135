// What a run has written down of itself: its metrics, and a timeline.

#ifndef MGC_TOOLS_REPORT_RUN_LOG_H_
#define MGC_TOOLS_REPORT_RUN_LOG_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

struct LogPoint {
  int64_t step = 0;
  double value = 0;  // may be no finite number
};
using LogSeries = std::vector<LogPoint>;

// Metrics by their keys (docs/metrics.md), in the order of the file; `other_losses.NAME` for loss
// terms behind the first.
struct RunLog {
  std::map<std::string, LogSeries> series;
  std::set<int64_t> warm_up;  // steps whose time is none to compare
  int64_t left_out = 0;       // steps that changed nothing
  int64_t steps = 0;          // in the file

  // The points of a key; none where nobody wrote it.
  const LogSeries& Of(const std::string& key) const;
};

// Reads metrics.jsonl. InvalidArgument, with file and line, for a line that is no object with a
// step, and for a file without any step; a last line without its end is left aside.
absl::StatusOr<RunLog> ParseRunLog(absl::string_view text, const std::string& file);

// The middle value of finite ones, the mean of two; NaN of none. Steps in `without` do not count.
double MedianOf(const LogSeries& series, const std::set<int64_t>& without);

// A stretch of a timeline.
struct LogBar {
  std::string name;
  std::string category;  // `action`, `collective`, `transfer`
  double begin_us = 0;
  double end_us = 0;
};

// Rows of a timeline, a queue of a rank each.
struct LogRow {
  std::string name;  // `rank 3 (stage 1, ...)`
  bool computes = true;
  bool predicted = false;
  std::vector<LogBar> bars;
};

// The last step that a timeline of mgc-run has (--trace), beside the predicted one; both begin at
// 0. InvalidArgument, with the place, for what is no such timeline.
absl::StatusOr<std::vector<LogRow>> ParseTimeline(absl::string_view text, const std::string& file);

}  // namespace mgc

#endif  // MGC_TOOLS_REPORT_RUN_LOG_H_
