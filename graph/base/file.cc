#include "graph/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/file_calls.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

absl::Status CheckReadable(const struct stat& info, absl::string_view path) {
  if (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode)) return absl::OkStatus();
  const char* kind = S_ISDIR(info.st_mode) ? "a directory" : "a device or socket";
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", EscapeBytes(path), ": it is ", kind, ", not a file"));
}

constexpr int64_t kBlock = int64_t{1} << 20;

// A file or pipe that is open to be read.
class ReadableFile {
 public:
  static absl::StatusOr<ReadableFile> Open(const std::string& path) {
    MGC_RETURN_IF_ERROR(CheckNoZeroByte("read", path));
    ReadableFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
    struct stat info;
    if (file.file_ < 0 || fstat(file.file_, &info) != 0) return SystemError(errno, "read", path);
    MGC_RETURN_IF_ERROR(CheckReadable(info, path));
    if (S_ISREG(info.st_mode)) file.bytes_ = info.st_size;
    return file;
  }
  ReadableFile(ReadableFile&& other) noexcept
      : file_(std::exchange(other.file_, -1)),
        bytes_(other.bytes_),
        path_(std::move(other.path_)) {}
  ReadableFile& operator=(ReadableFile&&) = delete;
  ~ReadableFile() {
    if (file_ >= 0) close(file_);
  }

  int64_t bytes() const { return bytes_; }  // 0 of a pipe
  // Fills the block, of kBlock bytes; how many there were, less at the end only.
  absl::StatusOr<int64_t> Read(char* block) const {
    int64_t filled = 0;
    while (filled < kBlock) {
      const ssize_t count = read(file_, block + filled, static_cast<size_t>(kBlock - filled));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return SystemError(errno, "read", path_);
      if (count == 0) break;
      filled += count;
    }
    return filled;
  }

 private:
  ReadableFile(int file, const std::string& path) : file_(file), path_(path) {}

  int file_;
  int64_t bytes_ = 0;
  std::string path_;  // for errors
};

bool IsDeviceOrPipe(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

absl::Status WriteDirectly(const std::string& path, absl::Span<const absl::string_view> pieces) {
  int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return SystemError(errno, "write", path);
  auto close_file = absl::MakeCleanup([file] { close(file); });
  for (absl::string_view piece : pieces) MGC_RETURN_IF_ERROR(WriteAll(file, piece, path));
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
  MGC_ASSIGN_OR_RETURN(const ReadableFile file, ReadableFile::Open(path));
  std::string content;
  content.reserve(static_cast<size_t>(std::min(file.bytes(), max_bytes)));
  std::unique_ptr<char[]> block(new char[kBlock]);
  while (true) {
    MGC_ASSIGN_OR_RETURN(const int64_t count, file.Read(block.get()));
    if (count == 0) return content;
    if (static_cast<int64_t>(content.size()) + count > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot read ", EscapeBytes(path), ": more than ", max_bytes, " bytes"));
    }
    content.append(block.get(), static_cast<size_t>(count));
  }
}

absl::Status ReadPieces(const std::string& path,
                        absl::FunctionRef<absl::Status(absl::string_view piece)> take) {
  MGC_ASSIGN_OR_RETURN(const ReadableFile file, ReadableFile::Open(path));
  std::unique_ptr<char[]> block(new char[kBlock]);
  while (true) {
    MGC_ASSIGN_OR_RETURN(const int64_t count, file.Read(block.get()));
    if (count == 0) return absl::OkStatus();
    MGC_RETURN_IF_ERROR(take({block.get(), static_cast<size_t>(count)}));
  }
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const absl::string_view> pieces) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("write", path));
  if (IsDeviceOrPipe(path)) return WriteDirectly(path, pieces);
  int64_t bytes = 0;
  for (absl::string_view piece : pieces) bytes += static_cast<int64_t>(piece.size());
  MGC_ASSIGN_OR_RETURN(const std::unique_ptr<SharedFile> file, SharedFile::Create(path, bytes));
  int64_t at = 0;
  for (absl::string_view piece : pieces) {
    MGC_RETURN_IF_ERROR(file->Write(at, piece));
    at += static_cast<int64_t>(piece.size());
  }
  MGC_RETURN_IF_ERROR(file->Sync());
  return file->Publish();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  return WriteFileAtomically(path, absl::MakeConstSpan(&content, 1));
}

}  // namespace mgc
