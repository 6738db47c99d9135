#include "kernels/cuda/local_move/local_move.h"

#include "kernels/cuda/device/device.h"

namespace mgc::cuda {
namespace {

constexpr int64_t kMostShort = int64_t{1} << 31;  // units counted in 32 bits

// Index: of units of the result; divisions of 32 bits are much the faster ones.
template <class T, class Index>
__global__ void MoveRowsKernel(RowMove move, const T* __restrict__ from, T* __restrict__ to) {
  const auto units = static_cast<Index>(move.rows * move.to_stride);
  const auto per_row = static_cast<Index>(move.to_stride);
  const auto valid = static_cast<Index>(move.valid);
  const Index stride = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < units;
       i += stride) {
    const Index row = i / per_row;
    const Index in_row = i - row * per_row;
    to[i] = in_row < valid ? from[row * move.from_stride + in_row] : T{};
  }
}

}  // namespace

template <class T>
int MoveRows(Stream stream, const RowMove& move, const T* from, T* to) {
  const int64_t units = move.rows * move.to_stride;
  const LaunchShape shape = ShapeFor(units);
  return units < kMostShort ? Launch(MoveRowsKernel<T, uint32_t>, shape, stream, move, from, to)
                            : Launch(MoveRowsKernel<T, uint64_t>, shape, stream, move, from, to);
}

template int MoveRows<uint8_t>(Stream, const RowMove&, const uint8_t*, uint8_t*);
template int MoveRows<uint16_t>(Stream, const RowMove&, const uint16_t*, uint16_t*);
template int MoveRows<uint32_t>(Stream, const RowMove&, const uint32_t*, uint32_t*);
template int MoveRows<uint64_t>(Stream, const RowMove&, const uint64_t*, uint64_t*);
template int MoveRows<Unit16>(Stream, const RowMove&, const Unit16*, Unit16*);

}  // namespace mgc::cuda
