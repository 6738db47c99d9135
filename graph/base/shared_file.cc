#include "graph/base/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file.h"
#include "graph/base/file_calls.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

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

// Writes all of a file, from its begin, to the device or pipe at `path`.
absl::Status CopyInto(const std::string& path, int from) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return SystemError(errno, "write", path);
  const auto close_file = absl::MakeCleanup([file] { close(file); });
  constexpr size_t kBlock = size_t{1} << 20;
  const std::unique_ptr<char[]> block(new char[kBlock]);
  for (int64_t at = 0;;) {
    const ssize_t count = pread(from, block.get(), kBlock, at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, "write", path);
    if (count == 0) return absl::OkStatus();
    MGC_RETURN_IF_ERROR(
        WriteAll(file, absl::string_view(block.get(), static_cast<size_t>(count)), path));
    at += count;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedFile>> SharedFile::Create(const std::string& path,
                                                               int64_t bytes) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("write", path));
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return SystemError(errno, "write", path);
  if (exists && S_ISDIR(info.st_mode)) return SystemError(EISDIR, "write", path);
  std::unique_ptr<SharedFile> made;
  if (exists && !S_ISREG(info.st_mode)) {
    MGC_ASSIGN_OR_RETURN(made, CreateNameless(path));
  } else {
    std::string target = path;
    if (exists) {
      const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
      if (real == nullptr) return SystemError(errno, "write", path);
      target = real.get();
    }
    MGC_ASSIGN_OR_RETURN(auto temporary, CreateTemporaryBeside(target));
    made.reset(new SharedFile(temporary.first, std::move(temporary.second), target));
    if (exists) made->mode_ = static_cast<int>(info.st_mode & 07777);
    // The other writers must be able to open it, even where what it replaces may only be read.
    if (exists && fchmod(made->file_, static_cast<mode_t>(made->mode_) | S_IWUSR) != 0) {
      return SystemError(errno, "write", target);
    }
  }
  if (ftruncate(made->file_, bytes) != 0) return SystemError(errno, "write", made->path_);
  return made;
}

absl::StatusOr<std::unique_ptr<SharedFile>> SharedFile::CreateNameless(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::tmpfile(), std::fclose);
  const int file = stream == nullptr ? -1 : fcntl(fileno(stream.get()), F_DUPFD_CLOEXEC, 0);
  if (file < 0) return SystemError(errno, "make a temporary file for", path);
  return std::unique_ptr<SharedFile>(new SharedFile(file, "", path));
}

absl::StatusOr<std::unique_ptr<SharedFile>> SharedFile::Open(const std::string& temporary,
                                                             const std::string& path) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("write", temporary));
  const int file = open(temporary.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return SystemError(errno, "write", path);
  return std::unique_ptr<SharedFile>(new SharedFile(file, "", path));
}

SharedFile::~SharedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  close(file_);
}

absl::Status SharedFile::Write(int64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, "write", path_);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

void SharedFile::BeginSync() {
  // Of a file system that cannot, Sync does all of it; errors are kept for that.
  sync_file_range(file_, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE);
}

absl::Status SharedFile::Sync() {
  return fsync(file_) == 0 ? absl::OkStatus() : SystemError(errno, "write", path_);
}

absl::Status SharedFile::Publish() {
  if (temporary_.empty()) return CopyInto(path_, file_);
  if (mode_ >= 0 && fchmod(file_, static_cast<mode_t>(mode_)) != 0) {
    return SystemError(errno, "write", path_);
  }
  // All bytes are on the disk: closing the file, and with it the lock, cannot fail.
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return SystemError(errno, "write", path_);
  temporary_.clear();
  SyncDirectoryOf(path_);
  return absl::OkStatus();
}

}  // namespace mgc
