// Who holds what in a matrix product of tensor cores, and where operands lie in shared memory:
// plain numbers, for device code, the emulator and tests. The maps are those of PTX's
// mma.m16n8k16, ldmatrix and wgmma.

#ifndef MGC_KERNELS_CUDA_DEVICE_TENSOR_LAYOUT_H_
#define MGC_KERNELS_CUDA_DEVICE_TENSOR_LAYOUT_H_

#include <cstdint>

namespace mgc::cuda {

struct MatrixCell {
  int row, column;
};

// The left operand [16 rows, 16 deep]: register `i` (of 4) of a lane holds this element and, in its
// upper half, the next of the row.
constexpr MatrixCell LeftCell(int lane, int i) {
  return {lane / 4 + i % 2 * 8, lane % 4 * 2 + i / 2 * 8};
}

// The right operand [16 deep, 8 columns]: register `i` (of 2) holds this element and the one below.
constexpr MatrixCell RightCell(int lane, int i) { return {lane % 4 * 2 + i * 8, lane / 4}; }

// The sums [16 rows, 8 columns]: register `i` (of 4).
constexpr MatrixCell SumCell(int lane, int i) {
  return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2};
}

// A tile in shared memory: rows of `chunks` chunks of 16 bytes, `chunks` a multiple of 8. Chunks of
// a row are exchanged so that the same chunk of 8 rows on end lies in 8 different places modulo 128
// bytes, which are all banks: one matrix of ldmatrix is read at once. The index of a chunk.
constexpr int SwizzledChunk(int chunks, int row, int chunk) {
  return row * chunks + (chunk ^ (row & 7));
}

// The same for rows of 4 chunks, two rows in 128 bytes, of which chunks are exchanged within a row.
constexpr int SwizzledHalfChunk(int row, int chunk) { return row * 4 + (chunk ^ (row / 2 & 3)); }

// Which row's chunk a lane names to ldmatrix for four matrices of 8 rows of one chunk; rows and
// chunks from a block's corner.
//
// 16 rows x 2 chunks that become the four registers of a left operand. Transposed: 16 rows deep,
// two right operands side by side.
constexpr MatrixCell DownThenAcross(int lane) { return {lane % 8 + lane / 8 % 2 * 8, lane / 16}; }
// 16 rows x 2 chunks that become two right operands, one of 8 rows (their columns) each.
constexpr MatrixCell AcrossThenDown(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }

// How an operand of a warpgroup's product [its rows or columns, 16 deep] lies in shared memory, in
// lines of `line` bytes (128 or 64), eight of them on end. Along: a line is a row of the operand,
// or a column, and goes along the depth. Across: a line is one element deep, and goes through
// `line` / 2 rows or columns.
struct SharedLayout {
  int line;
  bool across;
  int stride;   // bytes from eight lines to the next eight
  int leading;  // across: bytes from `line` / 2 rows or columns to the next
};

// Bytes to the element at `row` (or column) and `deep`, before the exchange below.
constexpr int PlaceIn(const SharedLayout& layout, int row, int deep) {
  const int lines = layout.across ? deep : row;
  const int along = layout.across ? row % (layout.line / 2) : deep;
  const int beyond = layout.across ? row / (layout.line / 2) : 0;
  return lines / 8 * layout.stride + lines % 8 * layout.line + along * 2 + beyond * layout.leading;
}

// Chunks of 16 bytes are exchanged by their address, as SwizzledChunk and SwizzledHalfChunk do in
// tiles that begin at a multiple of 1024: that of an element from its place, and back.
constexpr uint64_t Exchanged(const SharedLayout& layout, uint64_t address) {
  return address ^ (address >> 7 & (layout.line == 128 ? 7 : 3)) << 4;
}

// PTX's descriptor of a matrix at a shared address, in its first 2^18 bytes.
constexpr uint64_t DescriptorOf(const SharedLayout& layout, uint32_t address) {
  const uint64_t leading = layout.across ? static_cast<uint64_t>(layout.leading) : 16;
  const uint64_t kind = layout.line == 128 ? 1 : 2;
  return (address & 0x3ffff) >> 4 | leading >> 4 << 16 |
         static_cast<uint64_t>(layout.stride) >> 4 << 32 | kind << 62;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_TENSOR_LAYOUT_H_
