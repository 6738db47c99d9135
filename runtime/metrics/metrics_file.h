// metrics.jsonl: the objects of a run (runtime/metrics/metrics.h), one a line.

#ifndef MGC_RUNTIME_METRICS_METRICS_FILE_H_
#define MGC_RUNTIME_METRICS_METRICS_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// Every line is handed to the system at once, so that a reader can follow and a killed run keeps
// its lines. One run has the file: it is locked until this object is gone.
class MetricsFile {
 public:
  // Creates the file `path`. What an earlier run has left there is kept under the name `path`.1 or,
  // where that is taken, the next free number; a symbolic link is followed; a device or a pipe is
  // written as it is. Unavailable while another run has the file; errors of the system name the
  // escaped path.
  static absl::StatusOr<MetricsFile> Create(const std::string& path);

  // The same for a run that goes on behind step `step`: its lines follow those that the file has of
  // steps up to it. Lines of later steps, which this run takes again, and half a line of a run that
  // was killed are dropped, by an atomic replacement. A file with a line that is no object with a
  // whole number `step` is nobody's metrics: it is kept as by Create.
  static absl::StatusOr<MetricsFile> Continue(const std::string& path, int64_t step);

  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&& other) noexcept;
  ~MetricsFile();

  // Adds `object` as a line; of one that finds no room nothing stays in the file.
  absl::Status Append(absl::string_view object);

  // Where the earlier run's lines are now; empty when there were none.
  const std::string& earlier() const { return earlier_; }
  // How many lines Continue has dropped.
  int64_t dropped() const { return dropped_; }

 private:
  MetricsFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

  // Opens the file and locks it, as it is.
  static absl::StatusOr<MetricsFile> Open(const std::string& path);

  int file_;
  std::string path_;
  std::string earlier_;
  int64_t dropped_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_METRICS_METRICS_FILE_H_
