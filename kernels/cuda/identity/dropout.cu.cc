#include "graph/base/philox.h"
#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/identity/identity.h"

namespace mgc::cuda {
namespace {

// The bits of kCount consecutive indices. A block of the generator has those of 4 indices from a
// multiple of 4 on: elsewhere one block more is made, and all are moved by the words before
// `index`.
template <int kCount>
__device__ void DrawRun(const RandomStream& key, uint64_t index, uint32_t* bits) {
  constexpr int kBlocks = (kCount + 3) / 4;
  uint32_t words[4 * (kBlocks + 1)] = {};
  const auto skip = static_cast<unsigned>(index % 4);
#pragma unroll
  for (int b = 0; b <= kBlocks; ++b) {
    if (b == kBlocks && skip + kCount <= 4 * kBlocks) break;
    const PhiloxBlock made = Philox(key.seed, key.stream, index / 4 + static_cast<unsigned>(b));
#pragma unroll
    for (int w = 0; w < 4; ++w) words[4 * b + w] = made.word[w];
  }
  // Register arrays want indices known to the compiler: moved by 1, then by 2.
#pragma unroll
  for (int i = 0; i + 1 < 4 * (kBlocks + 1); ++i) words[i] = skip & 1 ? words[i + 1] : words[i];
#pragma unroll
  for (int i = 0; i < kCount; ++i) bits[i] = skip & 2 ? words[i + 2] : words[i];
}

// Units of kCount elements, whose indices follow each other; a thread has every `stride`th.
template <class T, int kCount>
__global__ void DropoutKernel(DropoutRule rule, IndexGrid grid, uint64_t sample_stride,
                              SamplePlace sample, int64_t units, const T* x, T* y) {
  using Elements = Vector<T, kCount>;
  const int64_t first_sample = (sample.step != nullptr ? *sample.step : 0) + sample.in_step;
  const uint64_t moved = static_cast<uint64_t>(first_sample) * sample_stride;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < units; u += stride) {
    const Elements in = reinterpret_cast<const Elements*>(x)[u];
    uint32_t bits[kCount];
    DrawRun<kCount>(rule.key, IndexOf(grid, u * kCount) + moved, bits);
    Elements out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      out.at[k] = Store<T>(bits[k] >= rule.threshold ? Load(in.at[k]) * rule.scale : 0.0f);
    }
    reinterpret_cast<Elements*>(y)[u] = out;
  }
}

}  // namespace

template <class T>
int Dropout(Stream stream, const DropoutRule& rule, const IndexGrid& grid, uint64_t sample_stride,
            const SamplePlace& sample, const T* x, T* y) {
  constexpr int kCount = 16 / sizeof(T);
  const int64_t n = grid.elements();
  if (IsAligned(x, 16) && IsAligned(y, 16) && grid.run() % kCount == 0) {
    return Launch(DropoutKernel<T, kCount>, ShapeFor(n / kCount), stream, rule, grid, sample_stride,
                  sample, n / kCount, x, y);
  }
  return Launch(DropoutKernel<T, 1>, ShapeFor(n), stream, rule, grid, sample_stride, sample, n, x,
                y);
}

template int Dropout(Stream, const DropoutRule&, const IndexGrid&, uint64_t, const SamplePlace&,
                     const float*, float*);
template int Dropout(Stream, const DropoutRule&, const IndexGrid&, uint64_t, const SamplePlace&,
                     const Bfloat16*, Bfloat16*);
template int Dropout(Stream, const DropoutRule&, const IndexGrid&, uint64_t, const SamplePlace&,
                     const Float16*, Float16*);

}  // namespace mgc::cuda
