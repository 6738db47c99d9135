#include "kernels/cuda/position/bucket_starts.h"

namespace mgc::cuda {

std::vector<int64_t> BucketStarts(const RelativeBuckets& rule) {
  const int64_t side = rule.causal ? rule.buckets : rule.buckets / 2;
  std::vector<int64_t> starts;
  for (int64_t bucket = 1; bucket < side; ++bucket) {
    int64_t below = starts.empty() ? 0 : starts.back() - 1;  // of an earlier bucket
    int64_t found = rule.farthest;                           // of this one or a later one
    while (found - below > 1) {
      const int64_t middle = below + (found - below) / 2;
      (RelativeBucketOf(rule, middle, 0) >= bucket ? found : below) = middle;
    }
    starts.push_back(found);
  }
  return starts;
}

}  // namespace mgc::cuda
