// A product of whole numbers has the bits of one of the same numbers in f32, times the scales.

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/gemm_test_util.h"
#include "kernels/parallel.h"

namespace mgc::cpu {
namespace {

struct Sizes {
  int64_t m, n, k;
};

class ScaledGemmTest : public testing::TestWithParam<Sizes> {
 protected:
  ScaledGemmTest() {
    const Sizes s = GetParam();
    std::mt19937 random(7);
    std::uniform_int_distribution<int> number(-127, 127);
    std::uniform_real_distribution<float> real(-1, 1);
    shape_.m = s.m;
    shape_.n = s.n;
    shape_.k = s.k;
    shape_.a = DenseStrides(s.m, s.k);
    shape_.c = DenseStrides(s.m, s.n);
    for (int64_t i = 0; i < s.m * s.k; ++i) a_.push_back(real(random));
    for (int64_t i = 0; i < s.k * s.n; ++i) {
      numbers_.push_back(static_cast<int8_t>(number(random)));
      wide_.push_back(numbers_.back());
    }
    for (int64_t i = 0; i < s.n; ++i) scale_.push_back(real(random));
  }

  void ExpectProduct() {
    const Sizes s = GetParam();
    const auto size = static_cast<size_t>(s.m * s.n);
    std::vector<float> scaled(size), product(size);
    std::vector<float> workspace(static_cast<size_t>(GemmWorkspaceFloats(s.m, s.n, s.k, 1)));
    SerialParallel serial;
    Gemm(serial, shape_, a_.data(), wide_.data(), nullptr, product.data(), workspace.data());
    ScaledGemm(serial, shape_, a_.data(), numbers_.data(), scale_.data(), scaled.data(),
               workspace.data());
    for (size_t i = 0; i < size; ++i) {
      ASSERT_EQ(scaled[i], product[i] * scale_[i % static_cast<size_t>(s.n)]) << i;
    }
  }

  GemmShape shape_;
  std::vector<float> a_, wide_, scale_;
  std::vector<int8_t> numbers_;
};

TEST_P(ScaledGemmTest, OfDenseRows) {
  shape_.b = DenseStrides(GetParam().k, GetParam().n);
  ExpectProduct();
}

TEST_P(ScaledGemmTest, OfDenseColumns) {
  shape_.b = TransposedStrides(GetParam().k, GetParam().n);
  ExpectProduct();
}

// Results of bf16 are rounded once, behind the scale.
TEST_P(ScaledGemmTest, RoundsOnce) {
  const Sizes s = GetParam();
  shape_.b = DenseStrides(s.k, s.n);
  const auto size = static_cast<size_t>(s.m * s.n);
  std::vector<Bfloat16> a, narrow(size);
  for (const float x : a_) a.push_back(ToBfloat16(x));
  std::vector<float> wide(size);
  std::vector<float> workspace(static_cast<size_t>(NarrowGemmWorkspaceFloats(s.m, s.n, s.k, 1)));
  SerialParallel serial;
  ScaledGemm(serial, shape_, a.data(), numbers_.data(), scale_.data(), wide.data(),
             workspace.data());
  ScaledGemm(serial, shape_, a.data(), numbers_.data(), scale_.data(), narrow.data(),
             workspace.data());
  for (size_t i = 0; i < size; ++i) {
    ASSERT_EQ(ToFloat(narrow[i]), ToFloat(ToBfloat16(wide[i]))) << i;
  }
}

// Few rows, more than one block of k, tiles that stick out.
INSTANTIATE_TEST_SUITE_P(Sizes, ScaledGemmTest,
                         testing::Values(Sizes{1, 96, 64}, Sizes{1, 700, 1100}, Sizes{4, 33, 515},
                                         Sizes{37, 130, 1100}, Sizes{300, 20, 70}));

}  // namespace
}  // namespace mgc::cpu
