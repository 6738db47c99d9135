// Division by a number that a whole launch shares: where a multiplication does, no division is
// made.

#ifndef MGC_KERNELS_CUDA_DEVICE_FAST_DIVISOR_H_
#define MGC_KERNELS_CUDA_DEVICE_FAST_DIVISOR_H_

#include <cstdint>

#include "kernels/cuda/device/device.h"

namespace mgc::cuda {

// Made on the host, used on the device. Below 2^31 a quotient is (n + n·m / 2^32) / 2^s with m and
// s of the divisor (Granlund and Montgomery, "Division by invariant integers using multiplication",
// PLDI 1994); above it is divided as usual.
class FastDivisor {
 public:
  FastDivisor() = default;
  // Of 0, which divides nothing, as of 1.
  explicit FastDivisor(int64_t divisor) : divisor_(divisor > 0 ? divisor : 1) {
    while (shift_ < 31 && (int64_t{1} << shift_) < divisor_) ++shift_;
    const int64_t power = int64_t{1} << shift_;
    // Above 2^31 the quotient of what is below is 0.
    if (divisor_ > power) return;
    multiplier_ = static_cast<uint32_t>(((power - divisor_) << 32) / divisor_ + 1);
  }

  __host__ __device__ int64_t divisor() const { return divisor_; }

  // n >= 0.
  __device__ int64_t Quotient(int64_t n) const {
    if (n >= kFast) return n / divisor_;
    const auto low = static_cast<uint32_t>(n);
    return (__umulhi(low, multiplier_) + low) >> shift_;
  }
  __device__ int64_t Remainder(int64_t n) const { return n - Quotient(n) * divisor_; }

 private:
  static constexpr int64_t kFast = int64_t{1} << 31;

  int64_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  int shift_ = 0;
};

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_FAST_DIVISOR_H_
