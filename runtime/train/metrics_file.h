// metrics.jsonl: the objects of a run (runtime/train/metrics.h), one a line.

#ifndef MGC_RUNTIME_TRAIN_METRICS_FILE_H_
#define MGC_RUNTIME_TRAIN_METRICS_FILE_H_

#include <string>

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

  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&& other) noexcept;
  ~MetricsFile();

  // Adds `object` as a line; of one that finds no room nothing stays in the file.
  absl::Status Append(absl::string_view object);

  // Where the earlier run's lines are now; empty when there were none.
  const std::string& earlier() const { return earlier_; }

 private:
  MetricsFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

  int file_;
  std::string path_;
  std::string earlier_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_METRICS_FILE_H_
