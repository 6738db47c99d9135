// A file that the processes of a run write together.

#ifndef MGC_RUNTIME_COMM_TEAM_FILE_H_
#define MGC_RUNTIME_COMM_TEAM_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/shared_file.h"
#include "runtime/comm/team.h"

namespace mgc {

// One that is being written. It is begun and ended by all processes together; between, each puts
// what it has into its places, from any thread. What is not ended leaves `path` as it was, and no
// temporary file.
class TeamFile {
 public:
  // Every process calls this, with the same path and size. A device or a pipe is InvalidArgument
  // for more than one process.
  static absl::StatusOr<TeamFile> Begin(Team& team, const std::string& path, int64_t bytes);

  SharedFile& file() { return *file_; }

  // Makes the file the content of its path. `written`: how writing ended here, what was written
  // being on the disk. Either all return OK and the file is whole, or all return the error that
  // Team::Agree chooses.
  absl::Status End(Team& team, const absl::Status& written);

 private:
  explicit TeamFile(std::unique_ptr<SharedFile> file) : file_(std::move(file)) {}

  std::unique_ptr<SharedFile> file_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TEAM_FILE_H_
