// Sums and maxima over the threads of a warp or a block, in trees that the number of threads alone
// fixes. Every thread gets the result, the same bits in all.

#ifndef MGC_KERNELS_CUDA_DEVICE_REDUCE_H_
#define MGC_KERNELS_CUDA_DEVICE_REDUCE_H_

#include "kernels/cuda/device/device.h"

namespace mgc::cuda {

struct SumOf {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

// The larger; what is no number counts only beside another.
struct LargerOf {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  __device__ double operator()(double a, double b) const { return fmax(a, b); }
};

// Over a whole warp: lanes whose numbers differ in one bit are joined, the lowest bit last. Both
// partners compute the same, as `op` commutes.
template <class T, class Op>
__device__ T WarpReduce(T value, Op op) {
#pragma unroll
  for (int with = kWarp / 2; with > 0; with /= 2) {
    value = op(value, __shfl_xor_sync(kWholeWarp, value, with));
  }
  return value;
}

// Over a block of whole warps: first each warp's, then those of the warps, with `neutral` for warps
// that the block lacks. Has barriers: all threads call it.
template <class T, class Op>
__device__ T BlockReduce(T value, T neutral, Op op) {
  __shared__ T of_warps[kWarp];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  value = WarpReduce(value, op);
  if (lane == 0) of_warps[thread / kWarp] = value;
  __syncthreads();
  value = lane < static_cast<int>(blockDim.x) / kWarp ? of_warps[lane] : neutral;
  value = WarpReduce(value, op);
  __syncthreads();  // of_warps may be written again
  return value;
}

template <class T>
__device__ T WarpSum(T value) {
  return WarpReduce(value, SumOf());
}
template <class T>
__device__ T BlockSum(T value) {
  return BlockReduce(value, T{}, SumOf());
}
__device__ inline float WarpMax(float value) { return WarpReduce(value, LargerOf()); }
__device__ inline float BlockMax(float value) { return BlockReduce(value, -INFINITY, LargerOf()); }

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_REDUCE_H_
