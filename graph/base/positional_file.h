// A file of which parts are read where they are needed.
//
// Nothing of it is mapped: a file that becomes shorter while it is read, or a disk that fails, is
// an error like any other, where a map would end the process; and memory does not grow with what
// has been read.

#ifndef MGC_GRAPH_BASE_POSITIONAL_FILE_H_
#define MGC_GRAPH_BASE_POSITIONAL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mgc {

// Any number of threads, and processes that are forked when it is open.
class PositionalFile {
 public:
  // Opens a regular file. Errors name the escaped path: those of ReadFile (graph/base/file.h), and
  // FailedPrecondition for a pipe too, of which no part can be read again.
  static absl::StatusOr<PositionalFile> Open(const std::string& path);
  PositionalFile(PositionalFile&& other) noexcept;
  PositionalFile& operator=(PositionalFile&&) = delete;
  ~PositionalFile();

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when it was opened

  // Fills `out` from `offset` on. DataLoss where the file ends before.
  absl::Status Read(int64_t offset, absl::Span<char> out) const;

 private:
  PositionalFile(int file, const std::string& path) : file_(file), path_(path) {}

  int file_;
  int64_t bytes_ = 0;
  std::string path_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_POSITIONAL_FILE_H_
