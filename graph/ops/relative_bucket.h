// Buckets of distances between positions: the one formula, for the op's meaning and its kernels.

#ifndef MGC_GRAPH_OPS_RELATIVE_BUCKET_H_
#define MGC_GRAPH_OPS_RELATIVE_BUCKET_H_

#include <cstdint>

namespace mgc {

// Of the op relative_bucket, whose check has passed.
struct RelativeBuckets {
  int64_t buckets;
  int64_t farthest;  // the last bucket begins before this distance
  bool causal;  // keys that come later count as distance 0; otherwise half the buckets are theirs
};

// In [0, buckets).
int64_t RelativeBucketOf(const RelativeBuckets& rule, int64_t query, int64_t key);

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_RELATIVE_BUCKET_H_
