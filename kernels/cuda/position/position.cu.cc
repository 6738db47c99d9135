#include "kernels/cuda/position/position.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/device/each.h"
#include "kernels/cuda/device/fast_divisor.h"

namespace mgc::cuda {
namespace {

struct Counting {
  int64_t begin;
  SamplePlace sample;
  int64_t* y;
  __device__ void operator()(int64_t i) const {
    y[i] = begin + (sample.step != nullptr ? *sample.step : 0) + sample.in_step + i;
  }
};

__device__ float SeenOrNot(bool seen) { return seen ? 0.0f : -INFINITY; }

struct Causal {
  FastDivisor keys;
  const int64_t* query;
  const int64_t* key;
  float* y;
  __device__ void operator()(int64_t i) const {
    const int64_t q = keys.Quotient(i);
    y[i] = SeenOrNot(key[i - q * keys.divisor()] <= query[q]);
  }
};

struct Padded {
  const int64_t* mask;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] = SeenOrNot(mask[i] != 0); }
};

// Starts of buckets that a launch takes with it; `adds` after the first ones.
constexpr int kStarts = 256;
struct Starts {
  int count;
  bool adds;
  int64_t later;
  int64_t at[kStarts];
};

// The bucket is the number of starts that lie at or before the distance.
__global__ void RelativeBucketKernel(Starts starts, FastDivisor keys, int64_t n,
                                     const int64_t* query, const int64_t* key, int64_t* y) {
  __shared__ int64_t at[kStarts];
  for (int i = static_cast<int>(threadIdx.x); i < starts.count; i += static_cast<int>(blockDim.x)) {
    at[i] = starts.at[i];
  }
  __syncthreads();
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    const int64_t q = keys.Quotient(i);
    const int64_t difference = query[q] - key[i - q * keys.divisor()];
    const bool later = difference < 0;
    const int64_t distance = !later ? difference : starts.later != 0 ? -difference : 0;
    int before = 0, beyond = starts.count;  // at[before - 1] <= distance < at[beyond]
    while (before < beyond) {
      const int middle = (before + beyond) / 2;
      if (at[middle] <= distance) {
        before = middle + 1;
      } else {
        beyond = middle;
      }
    }
    y[i] = (starts.adds ? y[i] : later ? starts.later : 0) + before;
  }
}

}  // namespace

int Iota(Stream stream, int64_t n, int64_t begin, const SamplePlace& sample, int64_t* y) {
  return Each(stream, n, Counting{begin, sample, y});
}

int CausalMask(Stream stream, int64_t queries, int64_t keys, const int64_t* query,
               const int64_t* key, float* y) {
  return Each(stream, queries * keys, Causal{FastDivisor(keys), query, key, y});
}

int PaddingMask(Stream stream, int64_t n, const int64_t* mask, float* y) {
  return Each(stream, n, Padded{mask, y});
}

int RelativeBucket(Stream stream, const BucketTable& table, int64_t queries, int64_t keys,
                   const int64_t* query, const int64_t* key, int64_t* y) {
  const int64_t n = queries * keys;
  int error = 0;
  for (int64_t first = 0; (first == 0 || first < table.count) && error == 0; first += kStarts) {
    Starts starts = {};
    starts.count = static_cast<int>(std::min<int64_t>(table.count - first, kStarts));
    starts.adds = first > 0;
    starts.later = table.later;
    std::copy(table.starts + first, table.starts + first + starts.count, starts.at);
    error = Launch(RelativeBucketKernel, ShapeFor(n), stream, starts, FastDivisor(keys), n, query,
                   key, y);
  }
  return error;
}

}  // namespace mgc::cuda
