// Parameters that lie strided in tensors of files (graph/weights/weight_map.h), read and written in
// pieces of the file.
//
// A parameter that is transposed in its file has the elements of a row far apart there. What is
// wanted of it is cut into panels of rows: a panel is what some rows have in some columns, so many
// values that reading it goes along the file, and it takes no more memory than that.

#ifndef MGC_RUNTIME_WEIGHTS_STRIDED_H_
#define MGC_RUNTIME_WEIGHTS_STRIDED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/base/positional_file.h"
#include "graph/weights/weight_map.h"
#include "runtime/data/safetensors.h"

namespace mgc {

// Elements [begin, end) of a parameter, counted row by row.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// A tensor of a file that is a parameter, element by element.
ParameterPart AsStored(const std::string& name, const std::vector<int64_t>& shape);

// A view with its digits grouped by the one that walks along the file. Element number
// (outer * rows + row) * columns + column lies at Place(outer, row, column), and
// Place(outer, row + 1, column) is the next one of the file.
class StridedGrid {
 public:
  explicit StridedGrid(const StridedView& view);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t Place(int64_t outer, int64_t row, int64_t column) const;

 private:
  int64_t begin_;
  std::vector<StridedView::Digit> outer_, inner_;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
};

// Columns [left, right) of rows [top, bottom), which have one outer number.
struct Panel {
  int64_t outer = 0;
  int64_t top = 0, bottom = 0;
  int64_t left = 0, right = 0;

  int64_t width() const { return right - left; }
  int64_t values() const { return (bottom - top) * width(); }
};

// The panels of at most `most` values, but for those of one row, that make up `wanted`, which are
// ascending and disjoint; in the order of their first elements.
std::vector<Panel> PanelsOf(const StridedGrid& grid, absl::Span<const ElementRange> wanted,
                            int64_t most);

// Calls `fn` for each run of a panel along the file: where it begins there, counted in elements,
// its column and how many rows. Runs that meet in the file come behind each other.
absl::Status ForEachFileRun(
    const StridedGrid& grid, const Panel& panel,
    absl::FunctionRef<absl::Status(int64_t place, int64_t column, int64_t count)> fn);

// A parameter in a file that is there.
struct PlacedPart {
  const PositionalFile* file = nullptr;
  int64_t offset = 0;  // of the first byte of the file's tensor
  SafetensorsType type = SafetensorsType::kF32;
  const ParameterPart* part = nullptr;
};

// Reads values of a parameter.
class StridedReader {
 public:
  // `wanted`: what is to be read, ascending and disjoint. What `from` points to outlives this.
  StridedReader(const PlacedPart& from, const std::vector<ElementRange>& wanted);

  // The values from element `begin` on, wanted ones. Ascending calls read each byte of the file
  // once at most. DataLoss where the file ends before.
  absl::Status Read(int64_t begin, absl::Span<float> values);

  int64_t bytes_read() const { return bytes_read_; }

 private:
  struct Loaded {
    Panel panel;
    std::vector<float> values;  // row by row; empty until they are needed
  };
  Loaded* Find(int64_t line, int64_t column);
  absl::Status Load(Loaded* loaded);
  absl::Status ReadRun(int64_t place, absl::Span<float> values);

  const PlacedPart from_;
  const StridedGrid grid_;
  std::vector<Panel> panels_;
  size_t next_ = 0;           // the first panel that no line has reached
  int64_t line_ = 0;          // the last one asked for
  std::vector<Loaded> live_;  // panels that the line crosses
  int64_t bytes_read_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_STRIDED_H_
