#include "runtime/data/blend/blend.h"

#include <iterator>
#include <utility>

namespace mgc {
namespace {

constexpr int64_t kDistance = 4096;

}  // namespace

Blend::Blend(std::vector<double> weights) : rule_(std::move(weights)), latest_(rule_.First()) {
  kept_.emplace(0, latest_);
}

Blended Blend::At(int64_t sample) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const BlendState& near = std::prev(kept_.upper_bound(sample))->second;
  if (latest_.sample > sample || latest_.sample < near.sample) latest_ = near;
  if (sample - latest_.sample > kDistance) {
    latest_ = rule_.Before(sample - sample % kDistance, latest_);
    kept_.emplace(latest_.sample, latest_);
  }
  while (latest_.sample < sample) {
    rule_.Advance(&latest_);
    if (latest_.sample % kDistance == 0) kept_.emplace(latest_.sample, latest_);
  }
  const size_t source = rule_.Next(latest_);
  return {source, latest_.given[source]};
}

}  // namespace mgc
