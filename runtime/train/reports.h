// Where the steps and evaluations of a run go: files and callbacks.

#ifndef MGC_RUNTIME_TRAIN_REPORTS_H_
#define MGC_RUNTIME_TRAIN_REPORTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "runtime/metrics/event_file.h"
#include "runtime/metrics/metrics.h"
#include "runtime/metrics/metrics_file.h"
#include "runtime/metrics/open_metrics.h"

namespace mgc {

struct ReportOptions {
  std::string metrics_path;                        // runtime/metrics/metrics_file.h; empty: none
  std::string tensorboard_dir;                     // runtime/metrics/event_file.h; empty: none
  std::string open_metrics_path;                   // runtime/metrics/open_metrics.h; empty: none
  std::function<void(const StepRecord&)> on_step;  // callbacks may be empty
  std::function<void(const EvalRecord&)> on_eval;
  std::function<void(const std::string&)> on_note;  // a line for people
};

// Does something in the process that speaks for all; in the others it drops what it gets.
class Reports {
 public:
  // `options` outlive this.
  Reports(const ReportOptions& options, bool is_lead) : options_(options), is_lead_(is_lead) {}

  // Opens the files of a run that goes on behind step `step`; 0: it begins. Nobody has a file's
  // name before.
  absl::Status Open(int64_t step);

  absl::Status Take(const StepRecord& record);
  absl::Status Take(const EvalRecord& record);
  void Note(const std::string& text) const;

  // When no step follows, since the run has ended so: brings the files up to date, and notes what
  // of the steps was not as it should be: those left out, those with numbers that are not finite
  // unless the run ended with one, long waits.
  absl::Status Close(const absl::Status& ended);

 private:
  absl::Status OpenMetricsFile(int64_t step);
  // To all files.
  template <class Record>
  absl::Status Write(const Record& record, const std::string& json);
  absl::Status WriteOpenMetrics(bool now);

  const ReportOptions& options_;
  const bool is_lead_;
  absl::optional<MetricsFile> file_;
  absl::optional<EventFile> events_;
  OpenMetrics open_metrics_;
  int64_t open_metrics_ns_ = 0;  // when they were written last; 0: never
  // Sums over the steps taken.
  int64_t steps_ = 0;
  int64_t left_out_ = 0;
  int64_t not_finite_ = 0;
  double ms_ = 0;
  double data_wait_ms_ = 0;
  double checkpoint_stall_ms_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_REPORTS_H_
