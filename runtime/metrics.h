// What one training step reports: a line for people, a JSON object for programs, and the file that
// collects the latter.
#ifndef MGC_RUNTIME_METRICS_H_
#define MGC_RUNTIME_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mgc {

struct StepRecord {
  int64_t step = 0;  // from 1
  double loss = 0;   // mean nats per token of the global batch, before the update
  std::map<std::string, double> other_losses;  // a model's loss terms behind the first, likewise
  double grad_norm = 0;                        // global, before clipping
  double lr = 0;
  double ms = 0;                       // wall time of the step
  std::optional<double> predicted_ms;  // what the plan's cost model said
  double tokens_per_second = 0;
  int64_t peak_bytes = 0;  // of the rank with the highest arena use
};

// "step 10 | loss 4.2130 | grad norm 1.310 | 43.0 ms (plan 41.2, +4.4%) | 95.0 k tokens/s | 212.0
// MiB", without the end of line; the part in parentheses only with a prediction, other losses
// behind the first as "| router 0.0123".
std::string StepLine(const StepRecord& record);

// {"step":10,"loss":...,"grad_norm":...,"lr":...,"ms":...,"tokens_per_second":...}, without the end
// of line; `"other_losses":{...}` behind the loss of a model with several terms. Numbers are in the
// shortest form that reads back exactly; those that are not finite are the strings "NaN",
// "Infinity", "-Infinity".
std::string StepJson(const StepRecord& record);

// `bytes` in binary units: "512 B", "1.5 KiB", "212.0 MiB".
std::string FormatBytes(int64_t bytes);

// metrics.jsonl: one StepJson a line. Every line is handed to the system at once, so that a reader
// can follow and a killed run keeps its steps.
class MetricsFile {
 public:
  // Creates `path`, or empties it. Errors of the system name the escaped path.
  static absl::StatusOr<MetricsFile> Create(const std::string& path);

  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&& other) noexcept;
  ~MetricsFile();

  absl::Status Append(const StepRecord& record);

 private:
  MetricsFile(int file, std::string path);

  int file_;
  std::string path_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_METRICS_H_
