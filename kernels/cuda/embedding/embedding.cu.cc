#include "kernels/cuda/embedding/embedding.h"

#include "kernels/cuda/device/elements.h"

namespace mgc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// A warp has every `stride`th row of the result, in units of kCount columns.
template <class T, int kCount>
__global__ void LookupKernel(TableShape shape, const T* __restrict__ table, int64_t n,
                             const int64_t* __restrict__ ids, T* __restrict__ y) {
  using Elements = Vector<T, kCount>;
  const int units = static_cast<int>(shape.cols / kCount);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; i < n; i += stride) {
    const int64_t row = RowOf(shape, ids[i]);
    auto* const to = reinterpret_cast<Elements*>(y) + i * units;
    const auto* const from = reinterpret_cast<const Elements*>(table) + row * units;
#pragma unroll 4
    for (int u = lane; u < units; u += kWarp) to[u] = row < 0 ? Elements{} : from[u];
  }
}

// A warp has every `stride`th row. What stays where it is, is left alone.
template <class T>
__global__ void WriteRowsKernel(WrittenRows shape, const T* into, const T* from, const int64_t* at,
                                T* y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t rows = shape.samples * shape.room;
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < rows; r += stride) {
    const int64_t written = RowWrittenOver(shape, at, r);
    if (written < 0 && into == y) continue;
    const T* const source = written < 0 ? into + r * shape.width : from + written * shape.width;
    for (int64_t w = lane; w < shape.width; w += kWarp) y[r * shape.width + w] = source[w];
  }
}

}  // namespace

template <class T>
int WriteRows(Stream stream, const WrittenRows& shape, const T* into, const T* from,
              const int64_t* at, T* y) {
  const LaunchShape launch = ShapeFor(shape.samples * shape.room * kWarp, kThreads);
  return Launch(WriteRowsKernel<T>, launch, stream, shape, into, from, at, y);
}

template <class T>
int Lookup(Stream stream, const TableShape& shape, const T* table, int64_t n, const int64_t* ids,
           T* y) {
  constexpr int kCount = 16 / sizeof(T);
  const LaunchShape launch = ShapeFor(n * kWarp, kThreads);
  if (shape.cols % kCount == 0 && IsAligned(table, 16) && IsAligned(y, 16)) {
    return Launch(LookupKernel<T, kCount>, launch, stream, shape, table, n, ids, y);
  }
  return Launch(LookupKernel<T, 1>, launch, stream, shape, table, n, ids, y);
}

template int Lookup(Stream, const TableShape&, const float*, int64_t, const int64_t*, float*);
template int Lookup(Stream, const TableShape&, const Bfloat16*, int64_t, const int64_t*, Bfloat16*);
template int Lookup(Stream, const TableShape&, const Float16*, int64_t, const int64_t*, Float16*);
template int WriteRows(Stream, const WrittenRows&, const float*, const float*, const int64_t*,
                       float*);
template int WriteRows(Stream, const WrittenRows&, const Bfloat16*, const Bfloat16*, const int64_t*,
                       Bfloat16*);
template int WriteRows(Stream, const WrittenRows&, const Float16*, const Float16*, const int64_t*,
                       Float16*);

}  // namespace mgc::cuda
