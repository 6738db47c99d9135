// What a run is at, as a text that Prometheus and its kin read (the OpenMetrics specification,
// version 1.0.0).

#ifndef MGC_RUNTIME_METRICS_OPEN_METRICS_H_
#define MGC_RUNTIME_METRICS_OPEN_METRICS_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "runtime/metrics/metrics.h"

namespace mgc {

// Steps and evaluations so far: what the last said, and sums since the process began.
class OpenMetrics {
 public:
  void Take(const StepRecord& record);
  void Take(const EvalRecord& record) { eval_ = record; }

  // All families with type, unit and help, up to `# EOF`. docs/metrics.md lists them.
  std::string Text() const;

 private:
  absl::optional<StepRecord> step_;
  absl::optional<EvalRecord> eval_;
  double tokens_ = 0;
  double data_wait_seconds_ = 0;
  double checkpoint_stall_seconds_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_METRICS_OPEN_METRICS_H_
