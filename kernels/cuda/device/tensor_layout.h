// Who holds what in a matrix product of tensor cores, and where operands lie in shared memory:
// plain numbers, for device code, the emulator and tests. The maps are those of PTX's
// mma.m16n8k16 and ldmatrix.

#ifndef MGC_KERNELS_CUDA_DEVICE_TENSOR_LAYOUT_H_
#define MGC_KERNELS_CUDA_DEVICE_TENSOR_LAYOUT_H_

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

// The same for rows of 4 chunks, two rows in 128 bytes, a tile of a multiple of 16 rows: the same
// chunk of 8 rows on end, the first one a multiple of 8, lies in 8 different places.
constexpr int SwizzledHalfChunk(int row, int chunk) {
  return row / 2 * 8 + ((row % 2 * 4 + chunk) ^ (row / 2 & 7));
}

// Which row's chunk a lane names to ldmatrix for four matrices of 8 rows of one chunk; rows and
// chunks from a block's corner.
//
// 16 rows x 2 chunks that become the four registers of a left operand. Transposed: 16 rows deep,
// two right operands side by side.
constexpr MatrixCell DownThenAcross(int lane) { return {lane % 8 + lane / 8 % 2 * 8, lane / 16}; }
// 16 rows x 2 chunks that become two right operands, one of 8 rows (their columns) each.
constexpr MatrixCell AcrossThenDown(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_TENSOR_LAYOUT_H_
