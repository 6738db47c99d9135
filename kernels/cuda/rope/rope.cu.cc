#include "kernels/cuda/rope/rope.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/fast_divisor.h"

namespace mgc::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kPairs = 256;  // of dims that a launch turns at most

// Pairs [first, first + count) of a head, handed over with the launch.
struct Turned {
  int first, count;
  double frequency[kPairs];
};

struct Angles {
  float cosine[kPairs], sine[kPairs];
};

// The angles of one position, reduced to half a turn either way; all threads call it.
__device__ void ComputeAngles(const Turned& turned, double position, bool inverse, Angles* angles) {
  constexpr double kTurn = 6.283185307179586477;
  for (int p = static_cast<int>(threadIdx.x); p < turned.count; p += kThreads) {
    const double turns = position * turned.frequency[p] * (1 / kTurn);
    const double part = turns - floor(turns);
    const double angle = (part < 0.5 ? part : part - 1) * kTurn;
    const auto sine = static_cast<float>(sin(angle));
    angles->cosine[p] = static_cast<float>(cos(angle));
    angles->sine[p] = inverse ? -sine : sine;
  }
}

// Turns kCount pairs, whose halves lie at `low` and `high`.
template <class T, int kCount>
__device__ void TurnPairs(const float* cosine, const float* sine, const T* x, int64_t low,
                          int64_t high, T* y) {
  using Elements = Vector<T, kCount>;
  const Elements a = *reinterpret_cast<const Elements*>(x + low);
  const Elements b = *reinterpret_cast<const Elements*>(x + high);
  Elements out_a, out_b;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const float l = Load(a.at[k]), h = Load(b.at[k]);
    out_a.at[k] = Store<T>(fmaf(l, cosine[k], -(h * sine[k])));
    out_b.at[k] = Store<T>(fmaf(h, cosine[k], l * sine[k]));
  }
  *reinterpret_cast<Elements*>(y + low) = out_a;
  *reinterpret_cast<Elements*>(y + high) = out_b;
}

// A block turns one token after another: angles once, for all heads, in shared memory, then units
// of kCount pairs, head by head. Elements that stay are copied with the first pairs.
template <class T, int kCount>
__global__ void RopeKernel(Turned turned, RopeShape shape, FastDivisor positions_size,
                           FastDivisor units_of_head, const T* x, const int64_t* positions, T* y) {
  __shared__ Angles angles;
  const int thread = static_cast<int>(threadIdx.x);
  const auto units = static_cast<int>(shape.heads * units_of_head.divisor());
  const auto stay = static_cast<int>(shape.d - shape.rotated);
  const int copied = x != y && turned.first == 0 ? static_cast<int>(shape.heads) * stay : 0;
  for (int64_t token = blockIdx.x; token < shape.tokens; token += gridDim.x) {
    const int64_t position = positions[positions_size.Remainder(token)];
    ComputeAngles(turned, static_cast<double>(position), shape.inverse, &angles);
    __syncthreads();
    const int64_t base = token * shape.heads * shape.d;
    for (int u = thread; u < units; u += kThreads) {
      const int64_t head = units_of_head.Quotient(u);
      const int p = (u - static_cast<int>(head * units_of_head.divisor())) * kCount;
      const int64_t low = base + head * shape.d + turned.first + p;
      TurnPairs<T, kCount>(angles.cosine + p, angles.sine + p, x, low, low + shape.rotated / 2, y);
    }
    for (int i = thread; i < copied; i += kThreads) {
      const int64_t at = base + i / stay * shape.d + shape.rotated + i % stay;
      y[at] = x[at];
    }
    __syncthreads();
  }
}

template <class T, int kCount>
int RopePairs(Stream stream, const RopeShape& shape, const Turned& turned, const T* x,
              const int64_t* positions, T* y) {
  return Launch(RopeKernel<T, kCount>, ShapeForRows(shape.tokens, kThreads), stream, turned, shape,
                FastDivisor(shape.positions_size), FastDivisor(turned.count / kCount), x, positions,
                y);
}

}  // namespace

template <class T>
int Rope(Stream stream, const RopeShape& shape, const T* x, const int64_t* positions,
         const double* frequency, T* y) {
  constexpr int kCount = 16 / sizeof(T);
  const int64_t half = shape.rotated / 2;
  const bool vectors =
      IsAligned(x, 16) && IsAligned(y, 16) && shape.d % kCount == 0 && half % kCount == 0;
  int error = 0;
  for (int64_t first = 0; first < half && error == 0; first += kPairs) {
    Turned turned = {};
    turned.first = static_cast<int>(first);
    turned.count = static_cast<int>(std::min<int64_t>(kPairs, half - first));
    std::copy(frequency + first, frequency + first + turned.count, turned.frequency);
    error = vectors ? RopePairs<T, kCount>(stream, shape, turned, x, positions, y)
                    : RopePairs<T, 1>(stream, shape, turned, x, positions, y);
  }
  return error;
}

#define MGC_INSTANTIATE(T) \
  template int Rope<T>(Stream, const RopeShape&, const T*, const int64_t*, const double*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
