// A file that is read in places, not as a whole.

#ifndef MGC_RUNTIME_STATE_RANDOM_ACCESS_FILE_H_
#define MGC_RUNTIME_STATE_RANDOM_ACCESS_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mgc {

class RandomAccessFile {
 public:
  // FailedPrecondition for what is no regular file; the system's errors name the escaped path.
  static absl::StatusOr<RandomAccessFile> Open(const std::string& path);
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  ~RandomAccessFile();

  // When it was opened.
  int64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  // Reads `bytes` from `offset` on, all of them; any number of threads. DataLoss where the file
  // ends before.
  absl::Status Read(int64_t offset, int64_t bytes, char* to) const;

 private:
  RandomAccessFile(int file, int64_t bytes, std::string path)
      : file_(file), bytes_(bytes), path_(std::move(path)) {}

  int file_;
  int64_t bytes_;
  std::string path_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_RANDOM_ACCESS_FILE_H_
