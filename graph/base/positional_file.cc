#include "graph/base/positional_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/file_calls.h"
#include "graph/base/status.h"

namespace mgc {

absl::StatusOr<PositionalFile> PositionalFile::Open(const std::string& path) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("read", path));
  // Without O_NONBLOCK a pipe that nobody writes to would never open.
  PositionalFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path);
  struct stat info;
  if (file.file_ < 0 || fstat(file.file_, &info) != 0) return SystemError(errno, "read", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read parts of ", EscapeBytes(path), ": it is ",
                     S_ISDIR(info.st_mode)    ? "a directory"
                     : S_ISFIFO(info.st_mode) ? "a pipe"
                                              : "a device or socket",
                     ", not a file"));
  }
  file.bytes_ = info.st_size;
  return file;
}

PositionalFile::PositionalFile(PositionalFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), bytes_(other.bytes_), path_(std::move(other.path_)) {}

PositionalFile::~PositionalFile() {
  if (file_ >= 0) close(file_);
}

absl::Status PositionalFile::Read(int64_t offset, absl::Span<char> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(file_, out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "read", path_);
    if (count == 0) {
      return absl::DataLossError(absl::StrCat("cannot read ", EscapeBytes(path_),
                                              ": it ends at byte ", offset, "; it had ", bytes_,
                                              " when it was opened"));
    }
    out.remove_prefix(static_cast<size_t>(count));
    offset += count;
  }
  return absl::OkStatus();
}

}  // namespace mgc
