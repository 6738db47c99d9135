// Buckets of distances against the formula, also of more buckets than a launch takes.
#include <numeric>

#include "graph/ops/relative_bucket.h"
#include "gtest/gtest.h"
#include "kernels/cuda/position/bucket_starts.h"
#include "kernels/cuda/position/position.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

void ExpectBuckets(const RelativeBuckets& rule, int64_t step) {
  const int64_t queries = 3, keys = 700;
  std::vector<int64_t> query = {0, 350 * step, 699 * step}, key(keys);
  for (size_t k = 0; k < key.size(); ++k) key[k] = static_cast<int64_t>(k) * step;
  const std::vector<int64_t> starts = BucketStarts(rule);
  const DeviceArray<int64_t> q(query), k(key), y(std::vector<int64_t>(queries * keys));
  const BucketTable table = {starts.data(), static_cast<int64_t>(starts.size()),
                             rule.causal ? 0 : rule.buckets / 2};
  ASSERT_EQ(RelativeBucket(nullptr, table, queries, keys, q.data(), k.data(), y.data()), 0);
  const std::vector<int64_t> buckets = y.Values();
  for (size_t i = 0; i < buckets.size(); ++i) {
    ASSERT_EQ(buckets[i], RelativeBucketOf(rule, query[i / keys], key[i % keys]))
        << query[i / keys] << " to " << key[i % keys];
  }
}

TEST(CudaPosition, BucketsAreThoseOfTheFormula) {
  for (const bool causal : {false, true}) {
    for (const int64_t step : {1, 7}) {
      ExpectBuckets({32, 128, causal}, step);
      ExpectBuckets({4, 3, causal}, step);
      ExpectBuckets({8, 4000, causal}, step);
      ExpectBuckets({1200, 5000, causal}, step);  // several launches
    }
  }
}

}  // namespace
}  // namespace mgc::cuda
