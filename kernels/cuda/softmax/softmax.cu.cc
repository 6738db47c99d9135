#include "kernels/cuda/softmax/softmax.h"

#include <cmath>

#include "kernels/cuda/device/map.h"

namespace mgc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kMostWarpCols = 1024;  // longer rows have a block each

// A row is a sequence of groups of 16 bytes, the last one perhaps cut short. Which elements are in
// a group, and so in which order a row is added up, does not depend on where the row lies: groups
// that are not `whole` (aligned, in rows that end with a group) are read and written element by
// element.
template <class T>
using Group = Vector<T, kPerVector<T>>;

template <class T>
__device__ Group<T> LoadGroup(const T* row, int first, int cols, bool whole, T beyond) {
  if (whole) return *reinterpret_cast<const Group<T>*>(row + first);
  Group<T> group;
#pragma unroll
  for (int k = 0; k < kPerVector<T>; ++k) group.at[k] = first + k < cols ? row[first + k] : beyond;
  return group;
}

template <class T>
__device__ void StoreGroup(const Group<T>& group, T* row, int first, int cols, bool whole) {
  if (whole) {
    *reinterpret_cast<Group<T>*>(row + first) = group;
    return;
  }
#pragma unroll
  for (int k = 0; k < kPerVector<T>; ++k) {
    if (first + k < cols) row[first + k] = group.at[k];
  }
}

// Who works on a row: a warp, with other warps of the block at other rows, or all of them. Lane i
// of n has groups i, i + n, ... of the row.
template <int kWarpsOfRow>
struct RowTeam {
  static constexpr int kLanes = kWarpsOfRow * kWarp;
  static constexpr int kRows = kWarps / kWarpsOfRow;  // of a block at a time

  __device__ static int Lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int64_t FirstRow() {
    return int64_t{blockIdx.x} * kRows + threadIdx.x / kLanes;
  }
  __device__ static int64_t RowStride() { return int64_t{gridDim.x} * kRows; }

  // What all lanes have, combined in an order that is always the same; every lane gets it.
  template <class S, class Combine>
  __device__ static S Over(S value, Combine combine) {
#pragma unroll
    for (int with = kWarp / 2; with > 0; with /= 2) {
      value = combine(value, __shfl_xor_sync(kWholeWarp, value, with));
    }
    if constexpr (kWarpsOfRow > 1) {
      __shared__ S of_warps[kWarpsOfRow];
      if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
      __syncthreads();
      value = of_warps[0];
      for (int w = 1; w < kWarpsOfRow; ++w) value = combine(value, of_warps[w]);
      __syncthreads();
    }
    return value;
  }
};

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ double operator()(double a, double b) const { return a + b; }
};

template <class T, int kWarpsOfRow>
__global__ void SoftmaxKernel(int64_t rows, int cols, bool whole, const T* x, T* y) {
  using Team = RowTeam<kWarpsOfRow>;
  constexpr int kCount = kPerVector<T>;
  const int begin = Team::Lane() * kCount, stride = Team::kLanes * kCount;
  const T none = Store<T>(-INFINITY);
  for (int64_t r = Team::FirstRow(); r < rows; r += Team::RowStride()) {
    const T* const from = x + r * cols;
    float most = -INFINITY;
    for (int c = begin; c < cols; c += stride) {
      const Group<T> in = LoadGroup(from, c, cols, whole, none);
#pragma unroll
      for (int k = 0; k < kCount; ++k) most = fmaxf(most, Load(in.at[k]));
    }
    most = Team::Over(most, Larger());
    double sum = 0;
    for (int c = begin; c < cols; c += stride) {
      const Group<T> in = LoadGroup(from, c, cols, whole, none);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (whole || c + k < cols) sum += static_cast<double>(expf(Load(in.at[k]) - most));
      }
    }
    const float inverse = 1.0f / static_cast<float>(Team::Over(sum, Plus()));
    for (int c = begin; c < cols; c += stride) {
      const Group<T> in = LoadGroup(from, c, cols, whole, none);
      Group<T> out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        out.at[k] = Store<T>(expf(Load(in.at[k]) - most) * inverse);
      }
      StoreGroup(out, y + r * cols, c, cols, whole);
    }
  }
}

template <class T, int kWarpsOfRow>
__global__ void SoftmaxGradKernel(int64_t rows, int cols, bool whole, const T* dy, const T* y,
                                  T* dx) {
  using Team = RowTeam<kWarpsOfRow>;
  constexpr int kCount = kPerVector<T>;
  const int begin = Team::Lane() * kCount, stride = Team::kLanes * kCount;
  const T zero = Store<T>(0.0f);
  for (int64_t r = Team::FirstRow(); r < rows; r += Team::RowStride()) {
    const T* const grads = dy + r * cols;
    const T* const values = y + r * cols;
    double dot = 0;
    for (int c = begin; c < cols; c += stride) {
      const Group<T> g = LoadGroup(grads, c, cols, whole, zero);
      const Group<T> v = LoadGroup(values, c, cols, whole, zero);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        dot += static_cast<double>(Load(g.at[k])) * static_cast<double>(Load(v.at[k]));
      }
    }
    const auto sum = static_cast<float>(Team::Over(dot, Plus()));
    for (int c = begin; c < cols; c += stride) {
      const Group<T> g = LoadGroup(grads, c, cols, whole, zero);
      const Group<T> v = LoadGroup(values, c, cols, whole, zero);
      Group<T> out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        out.at[k] = Store<T>(Load(v.at[k]) * (Load(g.at[k]) - sum));
      }
      StoreGroup(out, dx + r * cols, c, cols, whole);
    }
  }
}

LaunchShape ShapeOf(int64_t rows, int warps_of_row) {
  return ShapeFor(rows * warps_of_row * kWarp, kThreads);
}

}  // namespace

template <class T>
int Softmax(Stream stream, int64_t rows, int64_t cols, const T* x, T* y) {
  const bool whole = cols % kPerVector<T> == 0 && IsAligned(x, 16) && IsAligned(y, 16);
  const auto row = static_cast<int>(cols);
  if (cols <= kMostWarpCols) {
    return Launch(SoftmaxKernel<T, 1>, ShapeOf(rows, 1), stream, rows, row, whole, x, y);
  }
  return Launch(SoftmaxKernel<T, kWarps>, ShapeOf(rows, kWarps), stream, rows, row, whole, x, y);
}

template <class T>
int SoftmaxGrad(Stream stream, int64_t rows, int64_t cols, const T* dy, const T* y, T* dx) {
  const bool whole =
      cols % kPerVector<T> == 0 && IsAligned(dy, 16) && IsAligned(y, 16) && IsAligned(dx, 16);
  const auto row = static_cast<int>(cols);
  if (cols <= kMostWarpCols) {
    return Launch(SoftmaxGradKernel<T, 1>, ShapeOf(rows, 1), stream, rows, row, whole, dy, y, dx);
  }
  return Launch(SoftmaxGradKernel<T, kWarps>, ShapeOf(rows, kWarps), stream, rows, row, whole, dy,
                y, dx);
}

#define MGC_INSTANTIATE(T)                                         \
  template int Softmax<T>(Stream, int64_t, int64_t, const T*, T*); \
  template int SoftmaxGrad<T>(Stream, int64_t, int64_t, const T*, const T*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
