#include "graph/ops/relative_bucket.h"

#include <algorithm>
#include <cmath>

namespace mgc {

int64_t RelativeBucketOf(const RelativeBuckets& rule, int64_t query, int64_t key) {
  const int64_t side = rule.causal ? rule.buckets : rule.buckets / 2;
  const int64_t first = !rule.causal && key > query ? side : 0;
  const int64_t distance =
      rule.causal ? std::max<int64_t>(query - key, 0) : (key > query ? key - query : query - key);
  const int64_t exact = side / 2;
  if (distance < exact) return first + distance;
  // Where the quotient of logarithms is an integer, rounding must not take it below.
  constexpr double kRounding = 1e-9;
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(rule.farthest) / static_cast<double>(exact));
  const double beyond = std::floor(share * static_cast<double>(side - exact) + kRounding);
  return first + exact +
         static_cast<int64_t>(std::min(beyond, static_cast<double>(side - exact - 1)));
}

}  // namespace mgc
