// d_o · o of every row of queries.
#include "kernels/cuda/attention/attention_tensor_grad.h"
#include "kernels/cuda/attention/attention_tensor_shape.h"

namespace mgc::cuda {
namespace {

constexpr int kDeltaThreads = 256;

// One row for kDim / 8 lanes, a vector each.
template <class T, int kDim>
__global__ void __launch_bounds__(kDeltaThreads)
    DeltaKernel(int64_t rows, int dim, const T* d_o, const T* o, T* d_q) {
  constexpr int kShare = kDim / 8;
  const int lane = static_cast<int>(threadIdx.x) % kShare;
  const int64_t row = (int64_t{blockIdx.x} * kDeltaThreads + threadIdx.x) / kShare;
  float sum = 0.0f;
  if (row < rows && lane * 8 < dim) {
    const auto a = *reinterpret_cast<const Vector<T, 8>*>(d_o + row * dim + lane * 8);
    const auto b = *reinterpret_cast<const Vector<T, 8>*>(o + row * dim + lane * 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(Load(a.at[i]), Load(b.at[i]), sum);
  }
#pragma unroll
  for (int by = kShare / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, by);
  if (row < rows && lane == 0) DeltaOf(d_q + row * dim) = sum;
}

template <class T, int kDim>
int Issue(Stream stream, const AttentionShape& s, const AttentionResults<T>& results, T* d_q) {
  constexpr int kDeltaRows = kDeltaThreads / (kDim / 8);
  const int64_t rows = s.batch * s.queries * s.heads;
  return Launch(DeltaKernel<T, kDim>,
                ShapeForRows((rows + kDeltaRows - 1) / kDeltaRows, kDeltaThreads), stream, rows,
                static_cast<int>(s.dim), results.d_o, results.o, d_q);
}

}  // namespace

template <class T>
int TensorDeltas(Stream stream, const AttentionUse& use, const AttentionResults<T>& results,
                 T* d_q) {
  return TensorDim(use.shape.dim) == 64 ? Issue<T, 64>(stream, use.shape, results, d_q)
                                        : Issue<T, 128>(stream, use.shape, results, d_q);
}

#define MGC_INSTANTIATE(T) \
  template int TensorDeltas<T>(Stream, const AttentionUse&, const AttentionResults<T>&, T*)
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
