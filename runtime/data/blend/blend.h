// Which source a sample of blended data comes from.

#ifndef MGC_RUNTIME_DATA_BLEND_BLEND_H_
#define MGC_RUNTIME_DATA_BLEND_BLEND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/data/blend/blend_rule.h"

namespace mgc {

struct Blended {
  size_t source;
  int64_t sample;  // of the source, which has given so many before
};

// Any number of threads. The rule says what follows, not what stands far away: counts are kept
// every 4,096 samples where questions have come by, so that a sample takes at most so many choices,
// and the first one in a new place as few as BlendRule::Before needs.
class Blend {
 public:
  // As BlendRule.
  explicit Blend(std::vector<double> weights);

  // sample >= 0.
  Blended At(int64_t sample) const;

 private:
  const BlendRule rule_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, BlendState> kept_;  // by sample, multiples of the distance; always 0
  mutable BlendState latest_;                   // where the last question ended
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_BLEND_BLEND_H_
