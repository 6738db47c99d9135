// .npy files of integers of which single ones are read.

#ifndef MGC_RUNTIME_DATA_INDEX_FILE_H_
#define MGC_RUNTIME_DATA_INDEX_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/positional_file.h"

namespace mgc {

// The files whose names begin with `prefix` and have these ends; where `prefix` is one of them,
// those beside it.
std::vector<std::string> IndexFilesOf(absl::string_view prefix,
                                      const std::vector<absl::string_view>& ends);

// Immutable; any number of threads.
class IndexFile {
 public:
  // Of shape [rows] for one column, else [rows, columns]; `<i2`, `<i4`, `<u4`, `<i8` or `<u8`.
  // InvalidArgument for all else; errors of PositionalFile::Open.
  static absl::StatusOr<IndexFile> Open(const std::string& path, int64_t columns);

  std::string name() const;  // escaped
  int64_t rows() const { return rows_; }

  // The number at a place inside. InvalidArgument, with file, row and number, where it is not in
  // [0, end).
  absl::StatusOr<int64_t> At(int64_t row, int64_t column, int64_t end) const;

 private:
  explicit IndexFile(PositionalFile file) : file_(std::move(file)) {}

  PositionalFile file_;
  int64_t begin_ = 0;  // of the values, in bytes
  int64_t rows_ = 0;
  int64_t columns_ = 1;
  int64_t size_ = 0;  // of a value
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_INDEX_FILE_H_
