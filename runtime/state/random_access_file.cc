#include "runtime/state/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/file_calls.h"
#include "graph/base/status.h"

namespace mgc {

absl::StatusOr<RandomAccessFile> RandomAccessFile::Open(const std::string& path) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("read", path));
  // A pipe must not be waited for.
  RandomAccessFile file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0, path);
  struct stat info;
  if (file.file_ < 0 || fstat(file.file_, &info) != 0) return SystemError(errno, "read", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", EscapeBytes(path), ": it is not a file"));
  }
  file.bytes_ = info.st_size;
  return file;
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), bytes_(other.bytes_), path_(std::move(other.path_)) {}

RandomAccessFile& RandomAccessFile::operator=(RandomAccessFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  return *this;
}

RandomAccessFile::~RandomAccessFile() {
  if (file_ >= 0) close(file_);
}

absl::Status RandomAccessFile::Read(int64_t offset, int64_t bytes, char* to) const {
  while (bytes > 0) {
    const ssize_t count = pread(file_, to, static_cast<size_t>(bytes), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "read", path_);
    if (count == 0) {
      return absl::DataLossError(absl::StrCat("cannot read ", EscapeBytes(path_),
                                              ": it ends at byte ", offset, ", and ", bytes,
                                              " more are wanted"));
    }
    offset += count;
    bytes -= count;
    to += count;
  }
  return absl::OkStatus();
}

}  // namespace mgc
