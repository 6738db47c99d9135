// The part of an embedding table that a rank has, and rows written over others, for host and device
// code.

#ifndef MGC_KERNELS_SHARED_TABLE_SHAPE_H_
#define MGC_KERNELS_SHARED_TABLE_SHAPE_H_

#include <cstdint>

namespace mgc {

// Of a table [rows, cols] row 0 is id `offset`, the first `valid` rows are real.
struct TableShape {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t valid = 0;  // <= rows
  int64_t offset = 0;
};

// The local row of an id, -1 where this rank does not have it.
constexpr int64_t RowOf(const TableShape& shape, int64_t id) {
  const bool here = id >= shape.offset && id - shape.offset < shape.valid;
  return here ? id - shape.offset : -1;
}

// Of each sample `rows` rows are written over some of `room` ones; a row has `width` numbers.
struct WrittenRows {
  int64_t samples = 0;
  int64_t room = 0;
  int64_t rows = 0;
  int64_t width = 0;
};

// Which of all samples' rows is written over row `row` of all samples' rooms, where those of a
// sample begin at at[sample]; -1: none.
constexpr int64_t RowWrittenOver(const WrittenRows& shape, const int64_t* at, int64_t row) {
  const int64_t sample = row / shape.room;
  const int64_t i = row % shape.room - at[sample];
  return i >= 0 && i < shape.rows ? sample * shape.rows + i : -1;
}

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_TABLE_SHAPE_H_
