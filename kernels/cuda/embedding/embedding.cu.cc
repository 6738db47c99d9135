#include "kernels/cuda/embedding/embedding.h"

#include "kernels/cuda/device/elements.h"

namespace mgc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// A warp has every `stride`th row of the result, in units of kCount columns.
template <int kCount>
__global__ void LookupKernel(TableShape shape, const float* __restrict__ table, int64_t n,
                             const int64_t* __restrict__ ids, float* __restrict__ y) {
  using Elements = Vector<float, kCount>;
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
__global__ void WriteRowsKernel(WrittenRows shape, const float* into, const float* from,
                                const int64_t* at, float* y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t rows = shape.samples * shape.room;
  const int64_t stride = int64_t{gridDim.x} * kWarps;
  for (int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < rows; r += stride) {
    const int64_t written = RowWrittenOver(shape, at, r);
    if (written < 0 && into == y) continue;
    const float* const source = written < 0 ? into + r * shape.width : from + written * shape.width;
    for (int64_t w = lane; w < shape.width; w += kWarp) y[r * shape.width + w] = source[w];
  }
}

}  // namespace

int WriteRows(Stream stream, const WrittenRows& shape, const float* into, const float* from,
              const int64_t* at, float* y) {
  const LaunchShape launch = ShapeFor(shape.samples * shape.room * kWarp, kThreads);
  return Launch(WriteRowsKernel, launch, stream, shape, into, from, at, y);
}

int Lookup(Stream stream, const TableShape& shape, const float* table, int64_t n,
           const int64_t* ids, float* y) {
  const LaunchShape launch = ShapeFor(n * kWarp, kThreads);
  if (shape.cols % 4 == 0 && IsAligned(table, 16) && IsAligned(y, 16)) {
    return Launch(LookupKernel<4>, launch, stream, shape, table, n, ids, y);
  }
  return Launch(LookupKernel<1>, launch, stream, shape, table, n, ids, y);
}

}  // namespace mgc::cuda
