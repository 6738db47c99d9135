#include "runtime/data/blend.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mgc {
namespace {

constexpr int64_t kDistance = 4096;

}  // namespace

Blend::Blend(std::vector<double> weights) : weights_(std::move(weights)) {
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
  latest_.given.resize(weights_.size());
  kept_.push_back(latest_);
}

size_t Blend::Next(const State& state) const {
  const auto at = static_cast<double>(std::max<int64_t>(state.sample, 1));
  size_t best = 0;
  double largest = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double lacks = weights_[i] * at - static_cast<double>(state.given[i]);
    if (i > 0 && lacks <= largest) continue;
    largest = lacks;
    best = i;
  }
  return best;
}

void Blend::Advance(State* state) const {
  ++state->given[Next(*state)];
  ++state->sample;
}

Blended Blend::At(int64_t sample) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto block = std::min(static_cast<size_t>(sample / kDistance), kept_.size() - 1);
  const bool is_near = latest_.sample <= sample && latest_.sample >= kept_[block].sample;
  if (!is_near) latest_ = kept_[block];
  while (latest_.sample < sample) {
    Advance(&latest_);
    if (latest_.sample == static_cast<int64_t>(kept_.size()) * kDistance) kept_.push_back(latest_);
  }
  const size_t source = Next(latest_);
  return {source, latest_.given[source]};
}

}  // namespace mgc
