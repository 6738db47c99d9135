// Where the buckets of distances begin (graph/ops/relative_bucket.h), so that devices need not take
// logarithms.

#ifndef MGC_KERNELS_CUDA_POSITION_BUCKET_STARTS_H_
#define MGC_KERNELS_CUDA_POSITION_BUCKET_STARTS_H_

#include <cstdint>
#include <vector>

#include "graph/ops/relative_bucket.h"

namespace mgc::cuda {

// For each bucket of one side but the first, the smallest distance that lies in it or in a later
// one.
std::vector<int64_t> BucketStarts(const RelativeBuckets& rule);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_POSITION_BUCKET_STARTS_H_
