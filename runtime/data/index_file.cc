#include "runtime/data/index_file.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/data/npy.h"
#include "runtime/data/tokens/token_format.h"

namespace mgc {
namespace {

// Of an integer type that is read; 0 of others.
int64_t SizeOf(absl::string_view descr) {
  if (descr == "<i2") return 2;
  if (descr == "<i4" || descr == "<u4") return 4;
  return descr == "<i8" || descr == "<u8" ? 8 : 0;
}

}  // namespace

std::vector<std::string> IndexFilesOf(absl::string_view prefix,
                                      const std::vector<absl::string_view>& ends) {
  for (const absl::string_view end : ends) {
    if (absl::ConsumeSuffix(&prefix, end)) break;
  }
  std::vector<std::string> files;
  files.reserve(ends.size());
  for (const absl::string_view end : ends) files.push_back(absl::StrCat(prefix, end));
  return files;
}

absl::StatusOr<IndexFile> IndexFile::Open(const std::string& path, int64_t columns) {
  MGC_ASSIGN_OR_RETURN(PositionalFile opened, PositionalFile::Open(path));
  IndexFile index(std::move(opened));
  std::string begin(static_cast<size_t>(std::min(index.file_.bytes(), kMostNpyHeaderBytes)), '\0');
  MGC_RETURN_IF_ERROR(index.file_.Read(0, absl::MakeSpan(&begin[0], begin.size())));
  MGC_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(begin, path));
  const auto refused = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(index.name(), ": ", why...));
  };
  index.size_ = SizeOf(header.descr);
  if (index.size_ == 0) {
    return refused("its type is `", EscapeBytes(header.descr),
                   "`; of indices `<i2`, `<i4`, `<u4`, `<i8` and `<u8` are read");
  }
  const bool fits =
      header.shape.size() == (columns == 1 ? 1 : 2) && (columns == 1 || header.shape[1] == columns);
  if (!fits) {
    return refused("it has ", header.shape.size(), " dims, where indices of ", columns,
                   columns == 1 ? " column" : " columns", " have ", columns == 1 ? 1 : 2);
  }
  index.begin_ = header.bytes;
  index.rows_ = header.shape[0];
  index.columns_ = columns;
  const int64_t values = index.file_.bytes() - index.begin_;
  const int64_t row_bytes = columns * index.size_;
  if (values % row_bytes != 0 || values / row_bytes != index.rows_) {
    return refused("behind the header lie ", values, " bytes, and ", index.rows_, " rows take ",
                   row_bytes, " each");
  }
  return index;
}

std::string IndexFile::name() const { return EscapeBytes(file_.path()); }

absl::StatusOr<int64_t> IndexFile::At(int64_t row, int64_t column, int64_t end) const {
  MGC_CHECK(row >= 0 && row < rows_ && column >= 0 && column < columns_) << row << " " << column;
  std::array<char, 8> bytes = {};
  MGC_RETURN_IF_ERROR(file_.Read(begin_ + (row * columns_ + column) * size_,
                                 absl::MakeSpan(bytes.data(), static_cast<size_t>(size_))));
  // A number below 0 is a large one without its sign.
  const uint64_t number = NumberAt(bytes.data(), size_);
  if (number < static_cast<uint64_t>(end)) return static_cast<int64_t>(number);
  return absl::InvalidArgumentError(
      absl::StrCat(name(), ": row ", row, " has ", number, ", which is not below ", end));
}

}  // namespace mgc
