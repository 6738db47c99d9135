// Numbers of a run as TensorBoard reads them: a file of records, each an Event with scalars.
//
// A record is its length (64 bits, little endian), a checksum of the length, the bytes, a checksum
// of the bytes; a checksum is CRC-32C, turned right by 15 bits, plus 0xa282ead8 (TensorFlow's
// core/lib/io/record_writer.h and core/lib/hash/crc32c.h). What a record holds is a message of
// tensorboard/compat/proto/event.proto in the wire form of Protocol Buffers.

#ifndef MGC_RUNTIME_METRICS_EVENT_FILE_H_
#define MGC_RUNTIME_METRICS_EVENT_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/metrics/metrics.h"

namespace mgc {

// A scalar under its tag, `train/loss`.
using TaggedScalars = std::vector<std::pair<std::string, double>>;

// Tags of a step: train/loss, train/loss_NAME of other loss terms, train/grad_norm,
// train/learning_rate, train/loss_scale, perf/step_ms, perf/predicted_ms, perf/tokens_per_second,
// perf/tflops, perf/peak_share, perf/data_wait_ms, perf/checkpoint_stall_ms, memory/peak_gib; of an
// evaluation valid/loss.
TaggedScalars ScalarsOf(const StepRecord& record);
TaggedScalars ScalarsOf(const EvalRecord& record);

// The records, in the order of a file. `wall_time`: seconds since 1970.
std::string VersionEvent(double wall_time);
// A run goes on behind `step`: TensorBoard forgets what earlier files have of later steps.
std::string RestartEvent(double wall_time, int64_t step);
std::string ScalarsEvent(double wall_time, int64_t step, const TaggedScalars& scalars);

// A new file in a folder, in which TensorBoard takes all together for one run. Every record is
// handed to the system at once.
class EventFile {
 public:
  // Makes the folder where it is missing. `step`: that the run goes on behind; 0: it is new. Errors
  // of the system name the escaped path.
  static absl::StatusOr<EventFile> Create(const std::string& folder, int64_t step);

  EventFile(EventFile&& other) noexcept;
  EventFile& operator=(EventFile&& other) noexcept;
  ~EventFile();

  absl::Status Add(int64_t step, const TaggedScalars& scalars);

 private:
  EventFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  absl::Status Write(absl::string_view record);

  int file_;
  std::string path_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_METRICS_EVENT_FILE_H_
