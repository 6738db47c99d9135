// Weights as whole numbers, when they are read (graph/weights/quantized.h).

#ifndef MGC_RUNTIME_STATE_QUANTIZE_VALUES_H_
#define MGC_RUNTIME_STATE_QUANTIZE_VALUES_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mgc {

// The scales of a tensor's channels: the largest magnitude of each over 127; 1 of one that is zero.
class ChannelScales {
 public:
  // Of a tensor of this shape, whose dims [first_dim, first_dim + dims) count its channels. `read`
  // gives values from an element on; it is asked for all of the tensor, in order.
  using Read = absl::FunctionRef<absl::Status(int64_t whole, absl::Span<float> values)>;
  static absl::StatusOr<ChannelScales> Of(const std::vector<int64_t>& shape, int first_dim,
                                          int dims, Read read);

  // The scales of channels from `channel` on.
  void CopyScales(int64_t channel, absl::Span<float> to) const;

  // Makes of values from element `whole` on the nearest whole numbers, ties to even, from -127 to
  // 127, that times their channels' scales are what they were. What is no number becomes 0.
  void Quantize(int64_t whole, absl::Span<float> values) const;

 private:
  ChannelScales(int64_t inner, int64_t channels)
      : inner_(inner), scales_(static_cast<size_t>(channels)) {}

  // Calls fn(channel, part) for stretches of `values`, which begin at element `whole`, of a
  // channel.
  template <class Fn>
  void ForEachStretch(int64_t whole, absl::Span<float> values, const Fn& fn) const;

  int64_t inner_;  // elements side by side that are of one channel
  std::vector<float> scales_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_QUANTIZE_VALUES_H_
