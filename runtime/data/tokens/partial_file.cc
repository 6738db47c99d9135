#include "runtime/data/tokens/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/file_calls.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Makes a rename durable, where the file system can.
void SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int file = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

}  // namespace

absl::StatusOr<PartialFile> PartialFile::Open(const std::string& path) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("write", path));
  std::string target = path;
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) {
    target = std::filesystem::weakly_canonical(path, error).string();
    if (error) return SystemError(error.value(), "write", path);
  }
  std::string name = absl::StrCat(target, ".partial");
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return SystemError(errno, "write", name);
  PartialFile partial(file, std::move(name), std::move(target));
  // File systems without locks have one writer at a time, or what they deserve.
  if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    partial.Keep(true);
    return absl::FailedPreconditionError(
        absl::StrCat(EscapeBytes(partial.name()), " is being written by another process"));
  }
  MGC_ASSIGN_OR_RETURN(const int64_t bytes, partial.Size());
  partial.Keep(bytes > 0);  // whoever opens it may fail
  return partial;
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      keep_(other.keep_) {}

PartialFile& PartialFile::operator=(PartialFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(name_, other.name_);
  std::swap(path_, other.path_);
  std::swap(keep_, other.keep_);
  return *this;
}

PartialFile::~PartialFile() {
  if (file_ < 0) return;
  if (!keep_) unlink(name_.c_str());
  close(file_);
}

absl::StatusOr<int64_t> PartialFile::Size() const {
  struct stat info;
  if (fstat(file_, &info) != 0) return SystemError(errno, "read", name_);
  return static_cast<int64_t>(info.st_size);
}

absl::Status PartialFile::Resize(int64_t bytes) {
  return ftruncate(file_, bytes) == 0 ? absl::OkStatus() : SystemError(errno, "write", name_);
}

absl::Status PartialFile::Publish() {
  struct stat info;
  if (stat(path_.c_str(), &info) == 0) fchmod(file_, info.st_mode & 07777);
  if (rename(name_.c_str(), path_.c_str()) != 0) return SystemError(errno, "write", path_);
  keep_ = true;
  SyncFolderOf(path_);
  return absl::OkStatus();
}

}  // namespace mgc
