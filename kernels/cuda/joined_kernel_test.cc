#include "kernels/cuda/joined_kernel.h"

#include <vector>

#include "gtest/gtest.h"

namespace mgc::cuda {
namespace {

// A step of two operands, the first of which it writes.
StepPart InPlace(float* param, const float* grad, int64_t n) {
  StepPart part;
  part.n = n;
  part.arrays.operands[0] = param;
  part.arrays.operands[1] = grad;
  part.arrays.results[0] = param;
  return part;
}

TEST(JoinedKernelTest, StepsJoinThatDoNotMeet) {
  std::vector<float> x(100);
  const StepPart first = InPlace(&x[0], &x[10], 10);
  EXPECT_TRUE(MayJoin({}, first));
  EXPECT_TRUE(MayJoin({first}, InPlace(&x[20], &x[30], 10)));
  EXPECT_TRUE(MayJoin({first}, InPlace(&x[20], &x[10], 10))) << "both read the same";
  EXPECT_FALSE(MayJoin({first}, InPlace(&x[9], &x[30], 1))) << "both write the same";
  EXPECT_FALSE(MayJoin({first}, InPlace(&x[20], &x[9], 5))) << "it reads what the first writes";
  EXPECT_FALSE(MayJoin({first}, InPlace(&x[19], &x[40], 5))) << "it writes what the first reads";
  const StepPart second = InPlace(&x[50], &x[60], 10);
  EXPECT_FALSE(MayJoin({second, first}, InPlace(&x[5], &x[70], 10)));
  EXPECT_TRUE(MayJoin({first}, InPlace(&x[0], &x[10], 0))) << "it has no elements";
}

}  // namespace
}  // namespace mgc::cuda
