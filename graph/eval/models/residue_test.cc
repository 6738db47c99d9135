#include "graph/eval/models/residue.h"

#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 20240601;

// By division of 128 bits.
uint64_t Modulo(unsigned __int128 x, uint64_t prime) { return static_cast<uint64_t>(x % prime); }

uint64_t Power(uint64_t x, uint64_t exponent, uint64_t prime) {
  uint64_t power = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = Modulo(static_cast<unsigned __int128>(power) * x, prime);
    x = Modulo(static_cast<unsigned __int128>(x) * x, prime);
  }
  return power;
}

// By Miller and Rabin; with these bases exact for every word.
bool IsPrime(uint64_t n) {
  const int twos = __builtin_ctzll(n - 1);
  for (uint64_t base : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}) {
    uint64_t x = Power(base, (n - 1) >> twos, n);
    bool passes = x == 1 || x == n - 1;
    for (int i = 1; i < twos && !passes; ++i) {
      x = Power(x, 2, n);
      passes = x == n - 1;
    }
    if (!passes) return false;
  }
  return true;
}

template <class Field>
class ResidueTest : public testing::Test {
 protected:
  static constexpr uint64_t kPrime = Field::kPrime;

  // Residues at the edges and random ones.
  static std::vector<uint64_t> Samples() {
    std::vector<uint64_t> samples = {0, 1, 2, kPrime / 2, kPrime - 2, kPrime - 1};
    std::mt19937_64 random(kSeed);
    for (int i = 0; i < 40; ++i) samples.push_back(random() % kPrime);
    return samples;
  }
};
using Fields = testing::Types<FirstField, SecondField>;
TYPED_TEST_SUITE(ResidueTest, Fields);

TYPED_TEST(ResidueTest, EqualsDivisionWithRemainder) {
  constexpr uint64_t kPrime = TypeParam::kPrime;
  for (uint64_t x : this->Samples()) {
    for (uint64_t y : this->Samples()) {
      const unsigned __int128 wide = x;
      EXPECT_EQ(TypeParam::Add(x, y), Modulo(wide + y, kPrime)) << x << " " << y;
      EXPECT_EQ(TypeParam::Sub(x, y), Modulo(wide + kPrime - y, kPrime)) << x << " " << y;
      EXPECT_EQ(TypeParam::Mul(x, y), Modulo(wide * y, kPrime)) << x << " " << y;
    }
    EXPECT_EQ(TypeParam::Add(x, kPrime), x);
    EXPECT_EQ(TypeParam::Sub(x, kPrime), x);
  }
}

TYPED_TEST(ResidueTest, ReducesEveryWord) {
  constexpr uint64_t kPrime = TypeParam::kPrime;
  std::mt19937_64 random(kSeed);
  std::vector<uint64_t> words = {kPrime,     kPrime + 1, 2 * kPrime - 1,
                                 7 * kPrime, kPrime * 8, ~uint64_t{0}};
  for (int i = 0; i < 100; ++i) words.push_back(random());
  for (uint64_t word : words) EXPECT_EQ(TypeParam::Reduce(word), Modulo(word, kPrime)) << word;
}

TYPED_TEST(ResidueTest, InverseTimesItselfIsOne) {
  std::vector<uint64_t> samples = this->Samples();
  for (uint64_t x = 1; x < 2000; ++x) samples.push_back(x);
  for (int bits = 0; bits < TypeParam::kBits; ++bits) samples.push_back(uint64_t{1} << bits);
  for (uint64_t x : samples) {
    if (x == 0 || x >= TypeParam::kPrime) continue;
    EXPECT_LT(TypeParam::Inverse(x), TypeParam::kPrime);
    EXPECT_EQ(TypeParam::Mul(x, TypeParam::Inverse(x)), 1u) << x;
  }
}

TYPED_TEST(ResidueTest, IntegersKeepTheirSums) {
  constexpr uint64_t kPrime = TypeParam::kPrime;
  EXPECT_EQ(TypeParam::OfInt(0), 0u);
  EXPECT_EQ(TypeParam::OfInt(-1), kPrime - 1);
  EXPECT_EQ(TypeParam::OfInt(INT64_MAX), Modulo(static_cast<uint64_t>(INT64_MAX), kPrime));
  EXPECT_EQ(TypeParam::Add(TypeParam::OfInt(INT64_MIN), TypeParam::OfInt(INT64_MAX)),
            TypeParam::OfInt(-1));
}

// Integers and dyadic fractions have the residues that arithmetic gives them.
TYPED_TEST(ResidueTest, DoublesAreExact) {
  EXPECT_EQ(TypeParam::OfDouble(0.0), 0u);
  EXPECT_EQ(TypeParam::OfDouble(-0.0), 0u);
  for (int64_t n : {1, 2, 3, 1000, 1 << 30}) {
    EXPECT_EQ(TypeParam::OfDouble(static_cast<double>(n)), TypeParam::OfInt(n));
    EXPECT_EQ(TypeParam::OfDouble(static_cast<double>(-n)), TypeParam::OfInt(-n));
    EXPECT_EQ(TypeParam::Mul(TypeParam::OfDouble(static_cast<double>(n) / 1024), 1024),
              TypeParam::OfInt(n));
  }
  for (double x : {0.1, -3.7e100, DBL_MAX, DBL_MIN, DBL_TRUE_MIN, 1e-6}) {
    int exponent = 0;
    const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    uint64_t expected = TypeParam::OfInt(mantissa);
    const uint64_t half = TypeParam::Inverse(2);
    exponent -= 53;
    for (; exponent > 0; --exponent) expected = TypeParam::Mul(expected, 2);
    for (; exponent < 0; ++exponent) expected = TypeParam::Mul(expected, half);
    EXPECT_EQ(TypeParam::OfDouble(x), expected) << x;
  }
}

TEST(ResiduePrimesTest, TheSecondIsSafe) {
  EXPECT_TRUE(IsPrime(FirstField::kPrime));
  EXPECT_TRUE(IsPrime(SecondField::kPrime));
  EXPECT_TRUE(IsPrime((SecondField::kPrime - 1) / 2));
}

// What one field takes for one, the other does not.
TEST(ResiduePrimesTest, NoSmallNumberHasASmallOrderInBoth) {
  EXPECT_EQ(FirstField::OfDouble(0x1p61), 1u);
  EXPECT_NE(SecondField::OfDouble(0x1p61), 1u);
  for (uint64_t number = 2; number <= 64; ++number) {
    const ResiduePair factor = {number, number};
    ResiduePair power = factor;
    for (int exponent = 1; exponent <= 4000; ++exponent) {
      ASSERT_NE(power, (ResiduePair{1, 1})) << number << "^" << exponent;
      power = power * factor;
    }
  }
}

TEST(ResiduePairTest, IsComponentwise) {
  const ResiduePair x = {3, SecondField::kPrime - 1};
  const ResiduePair y = {5, 2};
  EXPECT_TRUE((x + y == ResiduePair{8, 1}));
  EXPECT_TRUE((x - y == ResiduePair{FirstField::kPrime - 2, SecondField::kPrime - 3}));
  EXPECT_TRUE((x * y == ResiduePair{15, SecondField::kPrime - 2}));
  EXPECT_TRUE((x != ResiduePair{3, 0}));
  EXPECT_TRUE((x != ResiduePair{0, SecondField::kPrime - 1}));
  EXPECT_TRUE(ResiduePair().IsZero());
}

}  // namespace
}  // namespace mgc
