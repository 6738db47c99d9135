#include "graph/residue.h"

#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 20240601;

// Residues at the edges and random ones.
std::vector<uint64_t> Samples() {
  std::vector<uint64_t> samples = {
      0, 1, 2, kResiduePrime / 2, kResiduePrime - 2, kResiduePrime - 1};
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 40; ++i) samples.push_back(random() % kResiduePrime);
  return samples;
}

// The same by division of 128 bits.
uint64_t Modulo(unsigned __int128 x) { return static_cast<uint64_t>(x % kResiduePrime); }

TEST(ResidueTest, EqualsDivisionWithRemainder) {
  for (uint64_t x : Samples()) {
    for (uint64_t y : Samples()) {
      const unsigned __int128 wide = x;
      EXPECT_EQ(ResidueAdd(x, y), Modulo(wide + y)) << x << " " << y;
      EXPECT_EQ(ResidueSub(x, y), Modulo(wide + kResiduePrime - y)) << x << " " << y;
      EXPECT_EQ(ResidueMul(x, y), Modulo(wide * y)) << x << " " << y;
    }
    EXPECT_EQ(ResidueAdd(x, kResiduePrime), x);
    EXPECT_EQ(ResidueSub(x, kResiduePrime), x);
    for (int bits = 0; bits < kResidueBits; ++bits) {
      EXPECT_EQ(ResidueRotate(x, bits), ResidueMul(x, uint64_t{1} << bits)) << x << " " << bits;
    }
  }
}

TEST(ResidueTest, ReducesEveryWord) {
  std::mt19937_64 random(kSeed);
  std::vector<uint64_t> words = {kResiduePrime, kResiduePrime + 1, 7 * kResiduePrime,
                                 8 * kResiduePrime, ~uint64_t{0}};
  for (int i = 0; i < 100; ++i) words.push_back(random());
  for (uint64_t word : words) EXPECT_EQ(ResidueReduce(word), Modulo(word)) << word;
}

TEST(ResidueTest, InverseTimesItselfIsOne) {
  std::vector<uint64_t> samples = Samples();
  for (uint64_t x = 1; x < 2000; ++x) samples.push_back(x);
  for (int bits = 0; bits < kResidueBits; ++bits) samples.push_back(uint64_t{1} << bits);
  for (uint64_t x : samples) {
    if (x == 0) continue;
    EXPECT_LT(ResidueInverse(x), kResiduePrime);
    EXPECT_EQ(ResidueMul(x, ResidueInverse(x)), 1u) << x;
  }
}

TEST(ResidueTest, IntegersKeepTheirSums) {
  EXPECT_EQ(ResidueOfInt(0), 0u);
  EXPECT_EQ(ResidueOfInt(-1), kResiduePrime - 1);
  EXPECT_EQ(ResidueOfInt(INT64_MAX), Modulo(static_cast<uint64_t>(INT64_MAX)));
  EXPECT_EQ(ResidueAdd(ResidueOfInt(INT64_MIN), ResidueOfInt(INT64_MAX)), ResidueOfInt(-1));
}

// Integers and dyadic fractions have the residues that arithmetic gives them.
TEST(ResidueTest, DoublesAreExact) {
  EXPECT_EQ(ResidueOfDouble(0.0), 0u);
  EXPECT_EQ(ResidueOfDouble(-0.0), 0u);
  for (int64_t n : {1, 2, 3, 1000, 1 << 30}) {
    EXPECT_EQ(ResidueOfDouble(static_cast<double>(n)), ResidueOfInt(n));
    EXPECT_EQ(ResidueOfDouble(static_cast<double>(-n)), ResidueOfInt(-n));
    EXPECT_EQ(ResidueMul(ResidueOfDouble(static_cast<double>(n) / 1024), 1024), ResidueOfInt(n));
  }
  for (double x : {0.1, -3.7e100, DBL_MAX, DBL_MIN, DBL_TRUE_MIN, 1e-6}) {
    int exponent = 0;
    const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    uint64_t expected = ResidueOfInt(mantissa);
    const uint64_t half = ResidueInverse(2);
    exponent -= 53;
    for (; exponent > 0; --exponent) expected = ResidueMul(expected, 2);
    for (; exponent < 0; ++exponent) expected = ResidueMul(expected, half);
    EXPECT_EQ(ResidueOfDouble(x), expected) << x;
  }
}

TEST(ResidueTest, PairsAreComponentwise) {
  const ResiduePair x = {3, kResiduePrime - 1};
  const ResiduePair y = {5, 2};
  EXPECT_TRUE((x + y == ResiduePair{8, 1}));
  EXPECT_TRUE((x - y == ResiduePair{kResiduePrime - 2, kResiduePrime - 3}));
  EXPECT_TRUE((x * y == ResiduePair{15, kResiduePrime - 2}));
  EXPECT_TRUE((x != ResiduePair{3, 0}));
  EXPECT_TRUE((x != ResiduePair{0, kResiduePrime - 1}));
  EXPECT_TRUE(ResiduePair().IsZero());
}

}  // namespace
}  // namespace mgc
