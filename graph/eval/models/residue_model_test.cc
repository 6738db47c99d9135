#include "graph/eval/models/residue_model.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "graph/eval/models/dual_model.h"
#include "graph/eval/models/scalar.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 20240602;
constexpr uint64_t kKey = 11;

class ResidueModelTest : public testing::Test {
 protected:
  ResiduePair Draw() {
    const uint64_t a = random_() % FirstField::kPrime;
    return {a, random_() % SecondField::kPrime};
  }
  std::vector<ResiduePair> Draw(size_t count) {
    std::vector<ResiduePair> drawn(count);
    for (ResiduePair& x : drawn) x = Draw();
    return drawn;
  }
  // All functions of one argument and min, of pairs that begin with x.
  std::vector<ResiduePair> AllFunctions(const ResidueModel& m, ResiduePair x, ResiduePair y) {
    std::vector<ResiduePair> results;
    for (const ScalarFunction& f : ScalarFunctions()) {
      results.push_back(f.arity == 1 ? m.Fn(f.name, {x}) : m.Fn(f.name, {x, y}));
    }
    return results;
  }

  std::mt19937_64 random_{kSeed};
  const ResidueModel m_{kKey};
};

TEST_F(ResidueModelTest, ConstantsAreExact) {
  EXPECT_EQ(m_.Constant(0), ResiduePair());
  EXPECT_EQ(m_.Size(6), m_.Constant(6));
  EXPECT_EQ(m_.Mul(m_.Ratio(5, 7), m_.Size(7)), m_.Size(5));
  EXPECT_EQ(m_.Ratio(3, 4), m_.Constant(0.75));
  EXPECT_EQ(m_.Constant(-0.0), ResiduePair());
  EXPECT_EQ(m_.Constant(-1e-6), m_.Sub(m_.Constant(0), m_.Constant(1e-6)));
}

// What is wrong by 2^61, or by any number that one field takes for one, is wrong.
TEST_F(ResidueModelTest, NoPowerOfTwoIsOne) {
  ResiduePair doubled = m_.Constant(1);
  for (int bits = 1; bits < 1000; ++bits) {
    doubled = m_.Add(doubled, doubled);
    EXPECT_EQ(doubled, m_.Constant(std::ldexp(1.0, bits)));
    EXPECT_NE(doubled, m_.Constant(1)) << bits;
    EXPECT_NE(m_.Inv(doubled), m_.Constant(1)) << bits;
  }
}

// The pair that stands for -inf is no constant: its components are not residues of one double.
TEST_F(ResidueModelTest, NegInfIsNoConstant) {
  const auto is_mantissa = [](uint64_t x, uint64_t prime) {
    return x < uint64_t{1} << 53 || prime - x < uint64_t{1} << 53;
  };
  uint64_t x = m_.NegInf().a;
  for (int bits = 0; bits < FirstField::kBits; ++bits) {
    EXPECT_FALSE(is_mantissa(x, FirstField::kPrime)) << bits;
    x = FirstField::Add(x, x);
  }
}

TEST_F(ResidueModelTest, WhatIsIndexedDependsOnNameAttributesAndIndexOnly) {
  const auto at = [this](const char* name, std::vector<double> attrs, int64_t i, int64_t j,
                         double real = 0) {
    return m_.Indexed(name, attrs, {i, j}, [real] { return real; });
  };
  const std::vector<ResiduePair> made = {
      at("cos", {1e4}, 3, 1), at("sin", {1e4}, 3, 1),    at("cos", {500}, 3, 1),
      at("cos", {1e4}, 1, 3), at("cos", {1e4}, 0, 0),    at("cos", {1e4, 8}, 3, 1),
      at("cos", {}, 3, 1),    at("cos", {8, 1e4}, 3, 1), m_.Random(3, 1, 0, 1e4)};
  std::set<uint64_t> components;
  for (const ResiduePair& x : made) components.insert({x.a, x.b});
  EXPECT_EQ(components.size(), 2 * made.size());
  EXPECT_EQ(at("cos", {1e4}, 3, 1, 0.5), made[0]);
  EXPECT_EQ(DoubleModel().Indexed("cos", {}, {3, 1}, [] { return 0.5; }), 0.5);
}

TEST_F(ResidueModelTest, IndicesLieBelowTheirBoundAndDependOnNameAttributesAndIndexOnly) {
  const auto at = [this](const char* name, double attr, int64_t i, int64_t exact = 0) {
    const double attrs[] = {attr};
    return m_.IndexBelow(7, name, attrs, {i}, [exact] { return exact; });
  };
  std::set<int64_t> made;
  int differ = 0;
  for (int64_t i = 0; i < 100; ++i) {
    made.insert(at("a", 1, i));
    differ += at("a", 1, i) != at("b", 1, i) ? 1 : 0;
    differ += at("a", 1, i) != at("a", 2, i) ? 1 : 0;
    EXPECT_EQ(at("a", 1, i), at("a", 1, i, 6));
  }
  EXPECT_EQ(made, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_GT(differ, 100);
  EXPECT_EQ(DoubleModel().IndexBelow(7, "a", {}, {3}, [] { return 5; }), 5);
}

TEST_F(ResidueModelTest, ObeysTheLawsOfAField) {
  for (int i = 0; i < 100; ++i) {
    const ResiduePair x = Draw(), y = Draw(), z = Draw();
    EXPECT_EQ(m_.Add(m_.Add(x, y), z), m_.Add(x, m_.Add(y, z)));
    EXPECT_EQ(m_.Mul(m_.Mul(x, y), z), m_.Mul(x, m_.Mul(y, z)));
    EXPECT_EQ(m_.Mul(x, m_.Add(y, z)), m_.Add(m_.Mul(x, y), m_.Mul(x, z)));
    EXPECT_EQ(m_.Add(m_.Sub(x, y), y), x);
    EXPECT_EQ(m_.Mul(x, m_.Inv(x)), m_.Constant(1));
    EXPECT_EQ(m_.Inv(x), m_.Inv(x)) << "once computed, once remembered";
  }
}

TEST_F(ResidueModelTest, CountsZeroDenominators) {
  EXPECT_EQ(m_.Inv(m_.Constant(0)), m_.Constant(0));
  EXPECT_EQ(m_.Inv({5, 0}), m_.Constant(0));
  EXPECT_EQ(m_.Inv({0, 5}), m_.Constant(0));
  EXPECT_EQ(m_.zero_denominators(), 3);
  m_.Inv({1, 1});
  EXPECT_EQ(m_.zero_denominators(), 3);
  m_.ExpDiff({1, 2}, m_.NegInf());
  EXPECT_EQ(m_.zero_denominators(), 4);
}

TEST_F(ResidueModelTest, FunctionsDependOnNameKeyAndBothComponents) {
  const ResidueModel other(kKey + 1);
  const ResidueModel same(kKey);
  const ResiduePair x = Draw(), y = Draw();
  const ResiduePair moved_a = {FirstField::Add(x.a, 1), x.b};
  const ResiduePair moved_b = {x.a, SecondField::Add(x.b, 1)};
  const std::vector<ResiduePair> made = AllFunctions(m_, x, y);
  EXPECT_EQ(made, AllFunctions(same, x, y));
  std::set<uint64_t> components;
  size_t count = 0;
  for (const auto& results : {made, AllFunctions(other, x, y), AllFunctions(m_, moved_a, y),
                              AllFunctions(m_, moved_b, y), AllFunctions(m_, y, x)}) {
    for (const ResiduePair& result : results) {
      components.insert({result.a, result.b});
      count += 2;
    }
  }
  EXPECT_EQ(components.size(), count) << "any of them agree";
  EXPECT_NE(m_.Fn("min", {x, y}), m_.Fn("min", {x, x}));
}

TEST_F(ResidueModelTest, FunctionsAreZeroAtZeroWhereDeclared) {
  const ResiduePair zero;
  for (const ScalarFunction& f : ScalarFunctions()) {
    const ResiduePair at_zero = f.arity == 1 ? m_.Fn(f.name, {zero}) : m_.Fn(f.name, {zero, zero});
    EXPECT_EQ(at_zero.IsZero(), f.zero_at_zero) << f.name;
  }
  EXPECT_FALSE(m_.Fn("min", {m_.Constant(1), zero}).IsZero());
  EXPECT_FALSE(m_.Fn("silu", {{0, 1}}).IsZero());
}

// What the proof believes of a function at zero, the numbers of a run must do.
TEST_F(ResidueModelTest, FunctionsAreDeclaredZeroAtZeroWhereTheyAre) {
  for (const ScalarFunction& f : ScalarFunctions()) {
    const std::vector<double> zeros(static_cast<size_t>(f.arity), 0.0);
    EXPECT_EQ(f.real(zeros) == 0, f.zero_at_zero) << f.name;
  }
}

TEST_F(ResidueModelTest, CountsCalls) {
  const int64_t before = m_.calls();
  m_.Fn("silu", {{1, 2}});
  m_.Random(1, 2, 3, 0.5);
  EXPECT_EQ(m_.calls() - before, 2);
  m_.ExpDiff({1, 2}, {3, 4});  // E twice
  EXPECT_EQ(m_.calls() - before, 4);
  m_.ExpDiff({5, 6}, {3, 4});  // the shift is remembered
  EXPECT_EQ(m_.calls() - before, 5);
}

TEST_F(ResidueModelTest, LogShiftUndoesExp) {
  for (int i = 0; i < 100; ++i) {
    const ResiduePair x = Draw(), m = Draw();
    EXPECT_EQ(m_.LogShift(m_.ExpDiff(x, m), m), x);
    EXPECT_EQ(m_.ExpDiff(x, x), m_.Constant(1));
  }
  EXPECT_EQ(m_.LogShift(m_.Constant(0), Draw()), m_.NegInf());
  EXPECT_EQ(m_.LogShift(m_.Constant(0), m_.NegInf()), m_.NegInf());
  EXPECT_EQ(m_.ExpDiff(m_.NegInf(), Draw()), m_.Constant(0));
  EXPECT_EQ(m_.ExpDiff(m_.NegInf(), m_.NegInf()), m_.Constant(0));
}

// What a softmax of residues is must not depend on the shift, nor on blocks.
TEST_F(ResidueModelTest, ABlockedSoftmaxIsTheSame) {
  const std::vector<ResiduePair> x = Draw(6);
  const auto sum_of = [&](size_t begin, size_t end, ResiduePair shift) {
    ResiduePair sum;
    for (size_t i = begin; i < end; ++i) sum = m_.Add(sum, m_.ExpDiff(x[i], shift));
    return sum;
  };
  const ResiduePair left = m_.Max(x[0], x[1]);
  ResiduePair right = m_.NegInf();
  for (size_t i = 2; i < 6; ++i) right = m_.Max(right, x[i]);
  const ResiduePair most = m_.Max(left, right);
  const ResiduePair sum = sum_of(0, 6, most);
  const ResiduePair first = sum_of(0, 2, left), second = sum_of(2, 6, right);
  EXPECT_EQ(m_.Add(m_.Mul(first, m_.ExpDiff(left, most)), m_.Mul(second, m_.ExpDiff(right, most))),
            sum);
  EXPECT_NE(m_.Add(first, second), sum) << "no rescale";
  const ResiduePair lse = m_.LogShift(sum, most);
  EXPECT_EQ(m_.LogShift(sum_of(0, 6, left), left), lse);
  EXPECT_EQ(m_.ExpDiff(x[3], lse), m_.Mul(m_.ExpDiff(x[3], most), m_.Inv(sum)));
  EXPECT_EQ(sum_of(0, 6, lse), m_.Constant(1));
}

TEST_F(ResidueModelTest, MaxIsALattice) {
  std::vector<ResiduePair> x = Draw(50);
  x.push_back(m_.Constant(0));
  x.push_back(m_.Constant(1));
  int ones = 0;
  for (const ResiduePair& a : x) {
    EXPECT_EQ(m_.Max(a, a), a);
    EXPECT_EQ(m_.Max(a, m_.NegInf()), a);
    EXPECT_EQ(m_.Max(m_.NegInf(), a), a);
    for (const ResiduePair& b : x) {
      EXPECT_EQ(m_.Max(a, b), m_.Max(b, a));
      EXPECT_TRUE(m_.Max(a, b) == a || m_.Max(a, b) == b);
      EXPECT_EQ(m_.Max(m_.Max(a, b), x[0]), m_.Max(a, m_.Max(b, x[0])));
    }
    // Not by size: small numbers win and lose, depending on the key.
    ones += ResidueModel(a.a).Max(m_.Constant(1), a) == m_.Constant(1) ? 1 : 0;
  }
  EXPECT_GT(ones, 10);
  EXPECT_LT(ones, 42);
}

TEST_F(ResidueModelTest, RandomDependsOnAllItsArguments) {
  const std::vector<ResiduePair> made = {
      m_.Random(1, 2, 3, 0.5), m_.Random(9, 2, 3, 0.5), m_.Random(1, 9, 3, 0.5),
      m_.Random(1, 2, 9, 0.5), m_.Random(1, 2, 3, 0.9), ResidueModel(kKey + 1).Random(1, 2, 3, 0.5),
      m_.Random(2, 1, 3, 0.5)};
  std::set<uint64_t> components;
  for (const ResiduePair& x : made) components.insert({x.a, x.b});
  EXPECT_EQ(components.size(), 2 * made.size());
  EXPECT_EQ(m_.Random(1, 2, 3, 0.5), made[0]);
}

// --- dual numbers

class DualModelTest : public ResidueModelTest {
 protected:
  DualPair DrawDual() { return {Draw(), Draw()}; }
  const DualModel d_{kKey};
};

TEST_F(DualModelTest, ValuesAreThoseOfTheResidues) {
  const DualPair x = DrawDual(), y = DrawDual();
  EXPECT_EQ(d_.Mul(x, y).value, m_.Mul(x.value, y.value));
  EXPECT_EQ(d_.Max(x, y).value, m_.Max(x.value, y.value));
  EXPECT_EQ(d_.ExpDiff(x, y).value, m_.ExpDiff(x.value, y.value));
  EXPECT_EQ(d_.LogShift(x, y).value, m_.LogShift(x.value, y.value));
  EXPECT_EQ(d_.Fn("rsqrt", {x}).value, m_.Fn("rsqrt", {x.value}));
  EXPECT_EQ(d_.Fn("min", {x, y}).value, m_.Fn("min", {x.value, y.value}));
  EXPECT_EQ(d_.Random(1, 2, 3, 0.5).value, m_.Random(1, 2, 3, 0.5));
}

TEST_F(DualModelTest, QuotientRule) {
  const DualPair x = DrawDual(), y = DrawDual();
  const ResiduePair square = m_.Inv(m_.Mul(y.value, y.value));
  const ResiduePair numerator = m_.Sub(m_.Mul(x.tangent, y.value), m_.Mul(x.value, y.tangent));
  EXPECT_EQ(d_.Mul(x, d_.Inv(y)).tangent, m_.Mul(numerator, square));
  EXPECT_EQ(d_.Sub(d_.Add(x, y), y).tangent, x.tangent);
}

TEST_F(DualModelTest, LogShiftUndoesExpWithItsTangent) {
  const DualPair x = DrawDual(), m = DrawDual();
  const DualPair back = d_.LogShift(d_.ExpDiff(x, m), m);
  EXPECT_EQ(back.value, x.value);
  EXPECT_EQ(back.tangent, x.tangent);
}

TEST_F(DualModelTest, FunctionsHaveTheirDeclaredDerivatives) {
  const DualPair x = DrawDual();
  EXPECT_EQ(d_.Fn("silu", {x}).tangent, m_.Mul(x.tangent, m_.Fn("silu_grad", {x.value})));
  const DualPair root = d_.Fn("sqrt", {x});
  EXPECT_EQ(m_.Mul(m_.Mul(m_.Constant(2), root.tangent), root.value), x.tangent);
  const DualPair inverse_root = d_.Fn("rsqrt", {x});
  const ResiduePair cube =
      m_.Mul(inverse_root.value, m_.Mul(inverse_root.value, inverse_root.value));
  EXPECT_EQ(m_.Mul(m_.Constant(-2), inverse_root.tangent), m_.Mul(cube, x.tangent));
  EXPECT_EQ(d_.missing_derivatives(), 0);
}

TEST_F(DualModelTest, CountsMissingDerivatives) {
  const DualPair x = DrawDual();
  d_.Fn("min", {d_.Constant(1), {x.value, {}}});
  EXPECT_EQ(d_.missing_derivatives(), 0) << "nothing moves";
  EXPECT_TRUE(d_.Fn("min", {d_.Constant(1), x}).tangent.IsZero());
  EXPECT_EQ(d_.missing_derivatives(), 1);
}

TEST_F(DualModelTest, TheWinnersTangentPasses) {
  const DualPair x = DrawDual(), y = DrawDual();
  const DualPair& winner = m_.Max(x.value, y.value) == x.value ? x : y;
  EXPECT_EQ(d_.Max(x, y).tangent, winner.tangent);
  EXPECT_EQ(d_.Max(d_.NegInf(), x).tangent, x.tangent);
}

TEST(ScalarFunctionTest, AMissingRowIsNamed) {
  EXPECT_DEATH(ScalarFunctionOf("gelu_gard"), "no scalar function `gelu_gard`");
}

}  // namespace
}  // namespace mgc
