#include "runtime/state/quantize_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/base/status.h"
#include "graph/weights/quantized.h"

namespace mgc {
namespace {

constexpr int64_t kAtOnce = int64_t{1} << 16;  // values

int64_t ProductOf(std::vector<int64_t>::const_iterator begin,
                  std::vector<int64_t>::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

}  // namespace

template <class Fn>
void ChannelScales::ForEachStretch(int64_t whole, absl::Span<float> values, const Fn& fn) const {
  const auto channels = static_cast<int64_t>(scales_.size());
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < count;) {
    const int64_t at = whole + i;
    const int64_t part = std::min(inner_ - at % inner_, count - i);
    fn(static_cast<size_t>(at / inner_ % channels),
       values.subspan(static_cast<size_t>(i), static_cast<size_t>(part)));
    i += part;
  }
}

absl::StatusOr<ChannelScales> ChannelScales::Of(const std::vector<int64_t>& shape, int first_dim,
                                                int dims, Read read) {
  const auto first = shape.begin() + first_dim;
  ChannelScales made(ProductOf(first + dims, shape.end()), ProductOf(first, first + dims));
  const int64_t elements = ProductOf(shape.begin(), shape.end());
  std::vector<float> values;
  for (int64_t at = 0; at < elements; at += kAtOnce) {
    values.resize(static_cast<size_t>(std::min(kAtOnce, elements - at)));
    MGC_RETURN_IF_ERROR(read(at, absl::MakeSpan(values)));
    made.ForEachStretch(at, absl::MakeSpan(values), [&](size_t channel, absl::Span<float> part) {
      float& largest = made.scales_[channel];
      for (float value : part) largest = std::max(largest, std::fabs(value));
    });
  }
  for (float& scale : made.scales_) scale = scale > 0 ? scale / kMostQuantized : 1;
  return made;
}

void ChannelScales::CopyScales(int64_t channel, absl::Span<float> to) const {
  std::copy_n(scales_.begin() + channel, to.size(), to.begin());
}

void ChannelScales::Quantize(int64_t whole, absl::Span<float> values) const {
  ForEachStretch(whole, values, [&](size_t channel, absl::Span<float> part) {
    for (float& value : part) {
      const float number = std::nearbyint(value / scales_[channel]);
      value = std::isnan(number) ? 0 : std::min(std::max(number, -kMostQuantized), kMostQuantized);
    }
  });
}

}  // namespace mgc
