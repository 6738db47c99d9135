// The memory that the processes of a run have in common, and the folder that a run leaves for
// people.

#ifndef MGC_TOOLS_LAUNCH_RUN_MEMORY_H_
#define MGC_TOOLS_LAUNCH_RUN_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "runtime/comm/process_map.h"
#include "runtime/watch/board.h"

namespace mgc {

// Zeroed memory that processes of a host share; gone with the last of them.
class SharedMemory {
 public:
  // Forked processes have it; others reach it as `/proc/PID/fd/FILE` of its owner.
  static absl::StatusOr<SharedMemory> Create(int64_t bytes);
  // Of a file, which then keeps what is written; made, or emptied if it is there.
  static absl::StatusOr<SharedMemory> CreateFile(const std::string& path, int64_t bytes);
  // Of a file that is there, to be read: as it is now and will be, or with `copy` as it is.
  static absl::StatusOr<SharedMemory> Open(const std::string& path, bool copy);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) = delete;
  ~SharedMemory();

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  int file() const { return file_; }

 private:
  SharedMemory(char* data, int64_t bytes, int file) : data_(data), bytes_(bytes), file_(file) {}

  char* data_;
  int64_t bytes_;
  int file_;
};

// A run's folder: `board`, `plan`, and `logs/process-0001.log` of every process but the first,
// which says on the terminal what it has to say.
std::string BoardPath(const std::string& run_dir);
std::string PlanPath(const std::string& run_dir);
std::string LogPath(const std::string& run_dir, int process);

// Memory for a board: a file of the run's folder, which is made with the plan in it, or without
// one.
absl::StatusOr<SharedMemory> MakeBoardMemory(const Plan& plan, const ProcessMap& map,
                                             const std::string& run_dir);
// Sends this process's stderr to its log, in a folder that is made where it is not there: hosts may
// have no file system in common. Returns a file that is what stderr was, -1 where there is none.
absl::StatusOr<int> LogTo(const std::string& run_dir, int process);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_RUN_MEMORY_H_
