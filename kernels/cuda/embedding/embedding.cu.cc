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

}  // namespace

int Lookup(Stream stream, const TableShape& shape, const float* table, int64_t n,
           const int64_t* ids, float* y) {
  const LaunchShape launch = ShapeFor(n * kWarp, kThreads);
  if (shape.cols % 4 == 0 && IsAligned(table, 16) && IsAligned(y, 16)) {
    return Launch(LookupKernel<4>, launch, stream, shape, table, n, ids, y);
  }
  return Launch(LookupKernel<1>, launch, stream, shape, table, n, ids, y);
}

}  // namespace mgc::cuda
