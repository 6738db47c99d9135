// Training on GPUs, for tests that compare it with other training.

#ifndef MGC_TESTS_SAME_LOSS_CUDA_RUNS_H_
#define MGC_TESTS_SAME_LOSS_CUDA_RUNS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/same_loss/train_plan.h"
#include "tools/devices/devices.h"

namespace mgc {

struct Apart {
  double difference = 0;  // the largest
  double largest = 0;     // of the numbers
};

inline Apart ApartOf(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  Apart apart;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    apart.largest = std::max(apart.largest, std::fabs(double{a[i]}));
    apart.difference = std::max(apart.difference, std::fabs(double{a[i]} - double{b[i]}));
  }
  return apart;
}

// Trains for `steps` with a learning rate for `planned` of them.
inline absl::StatusOr<TrainResult> TrainOn(const Plan& plan, const TrainCase& c, const char* device,
                                           const CudaSwitches& cuda, int64_t steps, int64_t planned,
                                           uint64_t seed = 1) {
  const absl::StatusOr<RunDevice> made = MakeRunDevice(device, cuda);
  if (!made.ok()) return made.status();
  TrainOptions options = OptionsFor(plan, c, planned, /*workers=*/2, made->kernels());
  options.device = made->make;
  options.seed = seed;
  return TrainWith(plan, options, steps);
}

// Losses and norms that are the same but for the order of sums in f32.
inline void ExpectNearLosses(const std::vector<double>& losses, const std::vector<double>& norms,
                             const TrainResult& wanted) {
  ASSERT_FALSE(losses.empty() || norms.empty());
  EXPECT_NEAR(losses[0] / wanted.losses[0], 1, 1e-6);
  EXPECT_NEAR(norms[0] / wanted.grad_norms[0], 1, 1e-6);
  for (size_t i = 0; i < std::min(losses.size(), wanted.losses.size()); ++i) {
    EXPECT_NEAR(losses[i] / wanted.losses[i], 1, 1e-5) << i;
  }
}

inline void ExpectNear(const TrainResult& wanted, const TrainResult& got) {
  ExpectNearLosses(got.losses, got.grad_norms, wanted);
  for (const auto& [name, gradient] : wanted.gradients) {
    // The true gradient of a key bias is zero.
    const bool is_zero = name.find("attention.k.bias") != std::string::npos;
    const Apart apart = ApartOf(gradient, got.gradients.at(name));
    EXPECT_LE(apart.difference, is_zero ? 1e-6 : 1e-4 * apart.largest) << name;
  }
}

inline void ExpectSameBits(const TrainResult& wanted, const TrainResult& got) {
  EXPECT_EQ(wanted.losses, got.losses);
  EXPECT_EQ(wanted.grad_norms, got.grad_norms);
  EXPECT_TRUE(wanted.gradients == got.gradients);
  EXPECT_TRUE(wanted.parameters == got.parameters);
}

}  // namespace mgc

#endif  // MGC_TESTS_SAME_LOSS_CUDA_RUNS_H_
