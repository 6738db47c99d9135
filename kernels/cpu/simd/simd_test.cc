#include "kernels/cpu/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstring>
#include <limits>
#include <string>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

#define MGC_SIMD_BODY "kernels/cpu/simd/simd_test.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

// The functions under test at one instruction set.
struct Level {
  std::string name;
  void (*exp)(int64_t, const float*, float*);
  void (*sigmoid)(int64_t, const float*, float*);
  void (*round)(int64_t, const float*, Bfloat16*);
  void (*round_to_half)(int64_t, const float*, Float16*);
  void (*widen_half)(int64_t, const Float16*, float*);
  double (*log)(double);
  double (*cos_of_turns)(double);
  int micro_rows, micro_cols;
  void (*one_tile)(int, int, int64_t, const float*, const float*, float*, float*);
};

#define MGC_TEST_LEVEL(level)                                                           \
  Level {                                                                               \
#level, level::ExpArray, level::SigmoidArray, level::RoundArray, level::RoundArray, \
        level::WidenArray, level::LogOfDouble, level::CosOfDouble, level::kMicroRows,   \
        level::kMicroCols, level::OneTile                                               \
  }

// Every level that this machine can run, not only the best.
std::vector<Level> Levels() {
  std::vector<Level> levels = {MGC_TEST_LEVEL(baseline)};
#if MGC_SIMD_MULTIVERSION
  if (BestSimdLevel() >= SimdLevel::kAvx2) levels.push_back(MGC_TEST_LEVEL(avx2));
  if (BestSimdLevel() >= SimdLevel::kAvx512) levels.push_back(MGC_TEST_LEVEL(avx512));
#endif
  return levels;
}

TEST(Simd, ExpIsWithinTwoUlps) {
  std::vector<float> x = Uniform(100001, 1, -87, 88.5);
  const std::vector<float> near = Uniform(1001, 2, -0.01f, 0.01f);
  x.insert(x.end(), near.begin(), near.end());
  for (const Level& level : Levels()) {
    std::vector<float> y(x.size());
    level.exp(static_cast<int64_t>(x.size()), x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(double{x[i]});
      ASSERT_NEAR(y[i], exact, 2e-7 * exact) << level.name << " " << x[i];
    }
  }
}

TEST(Simd, ExpAtTheEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f, -0.0f, inf, -inf, 1000, -1000, -95, -103, std::nanf("")};
  for (const Level& level : Levels()) {
    std::vector<float> y(x.size());
    level.exp(static_cast<int64_t>(x.size()), x.data(), y.data());
    EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 6),
              (std::vector<float>{1, 1, inf, 0, inf, 0}))
        << level.name;
    // Denormal results: correct to the spacing of denormals.
    EXPECT_NEAR(y[6], std::exp(-95.0), 1.5e-45);
    EXPECT_NEAR(y[7], std::exp(-103.0), 1.5e-45);
    EXPECT_TRUE(std::isnan(y[8]));
  }
}

TEST(Simd, Sigmoid) {
  const std::vector<float> x = Uniform(50001, 3, -80, 80);
  for (const Level& level : Levels()) {
    std::vector<float> y(x.size());
    level.sigmoid(static_cast<int64_t>(x.size()), x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = 1 / (1 + std::exp(-double{x[i]}));
      ASSERT_NEAR(y[i], exact, 3e-7 * exact) << level.name << " " << x[i];
    }
  }
}

// Both neighbours of every gap between bf16, its middle and what lies beside that; NaN with
// payloads in either half.
TEST(Simd, RoundsToBf16LikeOneNumber) {
  std::vector<float> x;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const uint32_t bits = upper << 16 | lower;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      x.push_back(value);
    }
  }
  x.resize(x.size() - 3);  // the last vector is not whole
  for (const Level& level : Levels()) {
    std::vector<Bfloat16> y(x.size());
    level.round(static_cast<int64_t>(x.size()), x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i].bits, ToBfloat16(x[i]).bits) << level.name << " " << x[i];
    }
  }
}

// The same of f16, of whose gaps half as many bits of an f32 are not seen.
TEST(Simd, RoundsToF16LikeOneNumber) {
  std::vector<float> x;
  for (uint32_t upper = 0; upper < 0x80000; ++upper) {
    for (uint32_t lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu}) {
      const uint32_t bits = upper << 13 | lower;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      x.push_back(value);
    }
  }
  x.resize(x.size() - 3);  // the last vector is not whole
  for (const Level& level : Levels()) {
    std::vector<Float16> y(x.size());
    level.round_to_half(static_cast<int64_t>(x.size()), x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i].bits, ToFloat16(x[i]).bits) << level.name << " " << x[i];
    }
  }
}

TEST(Simd, WidensEveryF16LikeOneNumber) {
  std::vector<Float16> x;
  std::vector<float> expected;
  for (uint32_t bits = 0; bits < 0xffff; ++bits) {
    x.push_back({static_cast<uint16_t>(bits)});
    expected.push_back(ToFloat(x.back()));
  }
  for (const Level& level : Levels()) {
    std::vector<float> y(x.size());
    level.widen_half(static_cast<int64_t>(x.size()), x.data(), y.data());
    EXPECT_TRUE(SameBits(y, expected)) << level.name;
  }
}

TEST(Simd, FunctionsOfDoubles) {
  const std::vector<float> u = Uniform(20001, 4, 0, 1);
  for (const Level& level : Levels()) {
    for (float x : u) {
      const double t = x;
      ASSERT_NEAR(level.cos_of_turns(t), std::cos(2 * M_PI * t), 1e-12);
      const double positive = t + 1e-10;
      ASSERT_NEAR(level.log(positive), std::log(positive),
                  1e-12 * std::fabs(std::log(positive)) + 1e-15);
    }
    EXPECT_EQ(level.log(1.0), 0.0);
  }
}

TEST(Simd, MicroTilesOfEverySize) {
  const int64_t depth = 13;
  for (const Level& level : Levels()) {
    std::vector<float> work(static_cast<size_t>(depth * (level.micro_rows + level.micro_cols)));
    for (int rows = 1; rows <= level.micro_rows; ++rows) {
      for (int cols = 1; cols <= level.micro_cols; ++cols) {
        const std::vector<float> a = Uniform(rows * depth, 5), b = Uniform(depth * cols, 6);
        Guarded c(int64_t{rows} * cols);
        level.one_tile(rows, cols, depth, a.data(), b.data(), c.data(), work.data());
        std::vector<double> expected(static_cast<size_t>(rows * cols));
        for (size_t i = 0; i < expected.size(); ++i) {
          const size_t row = i / static_cast<size_t>(cols), col = i % static_cast<size_t>(cols);
          for (size_t k = 0; k < static_cast<size_t>(depth); ++k) {
            expected[i] += double{a[row * static_cast<size_t>(depth) + k]} *
                           b[k * static_cast<size_t>(cols) + col];
          }
        }
        SCOPED_TRACE(level.name);
        ExpectClose(c.Take(), expected, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace mgc::cpu
