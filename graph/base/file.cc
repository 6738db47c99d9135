#include "graph/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// The error of a failed system call: "cannot <action> <path>: <the system's reason>".
absl::Status SystemError(int error, absl::string_view action, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", action, " ", EscapeBytes(path)));
}

absl::Status NulInPath(absl::string_view action, absl::string_view path) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", action, " ", EscapeBytes(path), ": the name contains a zero byte"));
}

absl::Status CheckReadable(const struct stat& info, absl::string_view path) {
  if (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode)) return absl::OkStatus();
  const char* kind = S_ISDIR(info.st_mode) ? "a directory" : "a device or socket";
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", EscapeBytes(path), ": it is ", kind, ", not a file"));
}

absl::Status WriteAll(int file, absl::string_view bytes, absl::string_view path) {
  while (!bytes.empty()) {
    ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "write", path);
    }
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status WriteDirectly(const std::string& path, absl::Span<const absl::string_view> pieces) {
  int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return SystemError(errno, "write", path);
  auto close_file = absl::MakeCleanup([file] { close(file); });
  for (absl::string_view piece : pieces) MGC_RETURN_IF_ERROR(WriteAll(file, piece, path));
  return absl::OkStatus();
}

// A new empty file in the directory of `path`; its name is short whatever the length of `path`'s
// own.
absl::StatusOr<std::pair<int, std::string>> CreateTemporaryBeside(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  for (int attempt = 0;; ++attempt) {
    std::string name = absl::StrFormat("%s.mgc-tmp-%d-%d", directory, getpid(), attempt);
    int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) return std::make_pair(file, std::move(name));
    if (errno != EEXIST || attempt == 10000) return SystemError(errno, "write", path);
  }
}

// Makes the rename durable. Not all file systems can synchronize a directory; the content is safe
// without.
void SyncDirectoryOf(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int file = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

// Writes `pieces` to a temporary file and renames it to `path`, which is no link; `old` describes
// the file that is there, or is null.
absl::Status Replace(const std::string& path, const struct stat* old,
                     absl::Span<const absl::string_view> pieces) {
  std::pair<int, std::string> temporary;
  MGC_ASSIGN_OR_RETURN(temporary, CreateTemporaryBeside(path));
  auto [file, name] = std::move(temporary);
  auto remove = absl::MakeCleanup([&name = name] { unlink(name.c_str()); });
  auto close_file = absl::MakeCleanup([file = file] { close(file); });
  if (old != nullptr && fchmod(file, old->st_mode & 07777) != 0) {
    return SystemError(errno, "write", path);
  }
  for (absl::string_view piece : pieces) MGC_RETURN_IF_ERROR(WriteAll(file, piece, path));
  if (fsync(file) != 0) return SystemError(errno, "write", path);
  std::move(close_file).Cancel();
  if (close(file) != 0) return SystemError(errno, "write", path);
  if (rename(name.c_str(), path.c_str()) != 0) return SystemError(errno, "write", path);
  std::move(remove).Cancel();
  SyncDirectoryOf(path);
  return absl::OkStatus();
}

}  // namespace

std::string EscapeBytes(absl::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    if (byte == '\\') {
      text += "\\\\";
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += static_cast<char>(byte);
    } else {
      absl::StrAppendFormat(&text, "\\x%02X", byte);
    }
  }
  return text;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  if (path.find('\0') != std::string::npos) return NulInPath("read", path);
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return SystemError(errno, "read", path);
  auto close_file = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0) return SystemError(errno, "read", path);
  MGC_RETURN_IF_ERROR(CheckReadable(info, path));

  std::string content;
  if (S_ISREG(info.st_mode)) content.reserve(std::min<int64_t>(info.st_size, max_bytes));
  constexpr int64_t kBlock = int64_t{1} << 20;
  std::unique_ptr<char[]> block(new char[kBlock]);
  while (true) {
    ssize_t count = read(file, block.get(), kBlock);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "read", path);
    if (count == 0) return content;
    if (static_cast<int64_t>(content.size()) + count > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot read ", EscapeBytes(path), ": more than ", max_bytes, " bytes"));
    }
    content.append(block.get(), count);
  }
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const absl::string_view> pieces) {
  if (path.find('\0') != std::string::npos) return NulInPath("write", path);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return SystemError(errno, "write", path);
    return Replace(path, nullptr, pieces);
  }
  if (S_ISDIR(info.st_mode)) return SystemError(EISDIR, "write", path);
  if (!S_ISREG(info.st_mode)) return WriteDirectly(path, pieces);
  std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), std::free);
  if (resolved == nullptr) return SystemError(errno, "write", path);
  return Replace(resolved.get(), &info, pieces);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  return WriteFileAtomically(path, absl::MakeConstSpan(&content, 1));
}

}  // namespace mgc
