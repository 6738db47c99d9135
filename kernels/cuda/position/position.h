// Positions, masks and distances, issued to a stream.

#ifndef MGC_KERNELS_CUDA_POSITION_POSITION_H_
#define MGC_KERNELS_CUDA_POSITION_POSITION_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"

namespace mgc::cuda {

// y[i] = begin + first sample + i; of `sample` {} the first sample is 0.
int Iota(Stream stream, int64_t n, int64_t begin, const SamplePlace& sample, int64_t* y);

// y[q, k] = 0 where key[k] <= query[q], else minus infinity.
int CausalMask(Stream stream, int64_t queries, int64_t keys, const int64_t* query,
               const int64_t* key, float* y);

// y[i] = 0 where mask[i] is not 0, else minus infinity.
int PaddingMask(Stream stream, int64_t n, const int64_t* mask, float* y);

// Buckets of distances: bucket i of a side begins at `starts[i - 1]`, ascending; a later key's are
// those from `later` on, or, where that is 0, that of distance 0.
struct BucketTable {
  const int64_t* starts = nullptr;  // of the host
  int64_t count = 0;
  int64_t later = 0;
};
// y[q, k] = the bucket of the distance from query[q] to key[k].
int RelativeBucket(Stream stream, const BucketTable& table, int64_t queries, int64_t keys,
                   const int64_t* query, const int64_t* key, int64_t* y);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_POSITION_POSITION_H_
