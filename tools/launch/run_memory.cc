#include "tools/launch/run_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "tools/cli/plan_file.h"

namespace mgc {
namespace {

absl::Status SystemError(const std::string& path, absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(EscapeBytes(path), ": ", what, ": ", std::strerror(errno)));
}

absl::Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return absl::OkStatus();
  return SystemError(path, "cannot make the folder");
}

absl::Status MakeFolders(const std::string& run_dir) {
  MGC_RETURN_IF_ERROR(MakeFolder(run_dir));
  return MakeFolder(absl::StrCat(run_dir, "/logs"));
}

// Maps a file, which the result owns from then on.
absl::StatusOr<char*> Map(int file, int64_t bytes, bool copy, const std::string& path) {
  void* const data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                          copy ? MAP_PRIVATE : MAP_SHARED, file, 0);
  if (data != MAP_FAILED) return static_cast<char*>(data);
  const absl::Status status = SystemError(path, "cannot map memory");
  close(file);
  return status;
}

}  // namespace

absl::StatusOr<SharedMemory> SharedMemory::Create(int64_t bytes) {
  const std::string name = "shared memory";
  const int file = memfd_create("mgc", MFD_CLOEXEC);
  if (file < 0) return SystemError(name, "cannot get it");
  if (ftruncate(file, bytes) != 0) {
    const absl::Status status = SystemError(name, "cannot get room");
    close(file);
    return status;
  }
  MGC_ASSIGN_OR_RETURN(char* const data, Map(file, bytes, false, name));
  return SharedMemory(data, bytes, file);
}

absl::StatusOr<SharedMemory> SharedMemory::CreateFile(const std::string& path, int64_t bytes) {
  // What an earlier run has left may still be mapped by somebody: it is replaced, not written over.
  unlink(path.c_str());
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return SystemError(path, "cannot create the file");
  if (const int error = posix_fallocate(file, 0, bytes); error != 0) {
    close(file);
    errno = error;
    return SystemError(path, "cannot get room for the file");
  }
  MGC_ASSIGN_OR_RETURN(char* const data, Map(file, bytes, false, path));
  return SharedMemory(data, bytes, file);
}

absl::StatusOr<SharedMemory> SharedMemory::Open(const std::string& path, bool copy) {
  const int file = open(path.c_str(), (copy ? O_RDONLY : O_RDWR) | O_CLOEXEC);
  if (file < 0) return SystemError(path, "cannot open the file");
  struct stat info = {};
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
    close(file);
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(path), ": is not a run's board"));
  }
  MGC_ASSIGN_OR_RETURN(char* const data, Map(file, info.st_size, copy, path));
  return SharedMemory(data, info.st_size, file);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), file_(other.file_) {}

SharedMemory::~SharedMemory() {
  if (data_ == nullptr) return;
  munmap(data_, static_cast<size_t>(bytes_));
  close(file_);
}

std::string BoardPath(const std::string& run_dir) { return absl::StrCat(run_dir, "/board"); }
std::string PlanPath(const std::string& run_dir) { return absl::StrCat(run_dir, "/plan"); }
std::string LogPath(const std::string& run_dir, int process) {
  return absl::StrFormat("%s/logs/process-%04d.log", run_dir, process);
}

absl::StatusOr<SharedMemory> MakeBoardMemory(const Plan& plan, const ProcessMap& map,
                                             const std::string& run_dir) {
  const int64_t bytes = Board::Bytes(map.ranks(), map.processes());
  if (run_dir.empty()) return SharedMemory::Create(bytes);
  MGC_RETURN_IF_ERROR(MakeFolders(run_dir));
  const std::string path = PlanPath(run_dir);
  MGC_RETURN_IF_ERROR(WriteFileAtomically(path, PlanContent(plan, path)));
  return SharedMemory::CreateFile(BoardPath(run_dir), bytes);
}

absl::StatusOr<int> LogTo(const std::string& run_dir, int process) {
  MGC_RETURN_IF_ERROR(MakeFolders(run_dir));
  const std::string path = LogPath(run_dir, process);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return SystemError(path, "cannot create the log");
  const int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  const bool done = dup2(file, STDERR_FILENO) >= 0;
  close(file);
  if (done) return before;
  return SystemError(path, "cannot write the log");
}

}  // namespace mgc
