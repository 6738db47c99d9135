#include "graph/base/file_calls.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"

namespace mgc {

absl::Status SystemError(int error, absl::string_view action, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " ", EscapeBytes(path)));
}

absl::Status CheckNoZeroByte(absl::string_view action, absl::string_view path) {
  if (path.find('\0') == absl::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", action, " ", EscapeBytes(path), ": the name contains a zero byte"));
}

absl::Status WriteAll(int file, absl::string_view bytes, absl::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "write", path);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace mgc
