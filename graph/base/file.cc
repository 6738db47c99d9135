#include "graph/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
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

// What the names of files that are being written begin with.
constexpr absl::string_view kTemporaryPrefix = ".mgc-tmp-";

// Ends in a slash, or is empty for a name alone.
std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// Removes what killed writers have left in `directory`. A living writer holds a lock on its file
// until the file has its final name: one that can be locked under its first name has no writer.
void RemoveLeftovers(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(
      opendir(directory.empty() ? "." : directory.c_str()), closedir);
  if (listing == nullptr) return;
  while (const dirent* entry = readdir(listing.get())) {
    if (!absl::StartsWith(entry->d_name, kTemporaryPrefix)) continue;
    const std::string name = absl::StrCat(directory, entry->d_name);
    const int file = open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0 && IsNamed(file, name)) unlink(name.c_str());
    close(file);
  }
}

// Locks a new file against RemoveLeftovers; false when that was faster. File systems without locks
// keep their leftovers.
bool LockTemporary(int file, const std::string& name) {
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  return IsNamed(file, name);
}

// A new empty file in the directory of `path`, locked; its name is short whatever the length of
// `path`'s own.
absl::StatusOr<std::pair<int, std::string>> CreateTemporaryBeside(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  RemoveLeftovers(directory);
  for (int attempt = 0;; ++attempt) {
    std::string name = absl::StrFormat("%s%s%d-%d", directory, kTemporaryPrefix, getpid(), attempt);
    const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 && LockTemporary(file, name)) return std::make_pair(file, std::move(name));
    const int error = file < 0 ? errno : EEXIST;
    if (file >= 0) close(file);
    if (error != EEXIST || attempt == 10000) return SystemError(error, "write", path);
  }
}

// Makes the rename durable. Not all file systems can synchronize a directory; the content is safe
// without.
void SyncDirectoryOf(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  const int file =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
  // From here on all bytes are on the disk: closing the file, and with it the lock, cannot fail.
  if (fsync(file) != 0) return SystemError(errno, "write", path);
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

bool IsNamed(int file, const std::string& path) {
  struct stat opened;
  struct stat named;
  return fstat(file, &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
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
