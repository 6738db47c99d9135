#include "kernels/cpu/optimizer/optimizer.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {
namespace {

TEST(Optimizer, AdamwFollowsItsDefinition) {
  const int64_t n = 20011;
  const std::vector<float> param = Uniform(n, 1), grad = Uniform(n, 2, -5, 5), m = Uniform(n, 3),
                           v = Uniform(n, 4, 0, 2);
  AdamwScalars s;
  s.lr = 3e-2;
  s.decay = 0.1;
  s.beta1 = 0.9;
  s.beta2 = 0.95;
  s.eps = 1e-8;
  s.correction1 = 1 - 0.9 * 0.9;
  s.correction2 = 1 - 0.95 * 0.95;
  s.grad_scale = 0.25;
  const std::vector<float> actual = OverWidths([&](Parallel& parallel) {
    Guarded p(param), m1(m), v1(v);
    Adamw(parallel, n, s, p.data(), grad.data(), m1.data(), v1.data(), p.data(), m1.data(),
          v1.data());
    return Joined({p.Take(), m1.Take(), v1.Take()});
  });
  for (size_t i = 0; i < param.size(); ++i) {
    const double g = grad[i] * s.grad_scale;
    const double m1 = s.beta1 * m[i] + (1 - s.beta1) * g;
    const double v1 = s.beta2 * v[i] + (1 - s.beta2) * g * g;
    const double step = m1 / s.correction1 / (std::sqrt(v1 / s.correction2) + s.eps);
    const double p = param[i] - s.lr * (step + s.decay * param[i]);
    ASSERT_NEAR(actual[i], p, 2e-7);
    ASSERT_NEAR(actual[param.size() + i], m1, 2e-7);
    ASSERT_NEAR(actual[2 * param.size() + i], v1, 4e-7);
  }
}

// The same numbers through the one-moment optimizers: what each makes of an element, in double.
struct OneMoment {
  const char* name;
  void (*run)(Parallel&, int64_t n, const float* param, const float* grad, float* m, float* to);
  // param' (or a direction) and m'.
  std::pair<double, double> (*expected)(double param, double grad, double m);
};

const OneMoment kOneMoment[] = {
    {"sgd",
     [](Parallel& parallel, int64_t n, const float* param, const float* grad, float* m, float* to) {
       Sgd(parallel, n, {0.03, 0.1, 0.9, 0.25}, param, grad, m, to, m);
     },
     [](double param, double grad, double m) {
       const double m1 = 0.9 * m + grad * 0.25 + 0.1 * param;
       return std::make_pair(param - 0.03 * m1, m1);
     }},
    {"lion",
     [](Parallel& parallel, int64_t n, const float* param, const float* grad, float* m, float* to) {
       Lion(parallel, n, {0.03, 0.1, 0.9, 0.98, 0.25}, param, grad, m, to, m);
     },
     [](double param, double grad, double m) {
       const double g = grad * 0.25;
       const double mean = 0.9 * m + 0.1 * g;
       return std::make_pair(param - 0.03 * ((mean > 0) - (mean < 0) + 0.1 * param),
                             0.98 * m + 0.02 * g);
     }},
    {"nesterov",
     [](Parallel& parallel, int64_t n, const float* /*param*/, const float* grad, float* m,
        float* to) { Nesterov(parallel, n, 0.95, 0.25, grad, m, to, m); },
     [](double /*param*/, double grad, double m) {
       const double g = grad * 0.25;
       const double m1 = 0.95 * m + 0.05 * g;
       return std::make_pair(0.95 * m1 + 0.05 * g, m1);
     }},
    {"decayed_step",
     [](Parallel& parallel, int64_t n, const float* param, const float* grad, float* /*m*/,
        float* to) { DecayedStep(parallel, n, 0.03, 0.1, param, grad, to); },
     [](double param, double grad, double m) {
       return std::make_pair(param - 0.03 * (grad + 0.1 * param), m);
     }},
};

TEST(Optimizer, StepsOfOneMomentFollowTheirDefinitions) {
  const int64_t n = 20011;
  const std::vector<float> param = Uniform(n, 1), grad = Uniform(n, 2, -5, 5), m = Uniform(n, 3);
  for (const OneMoment& step : kOneMoment) {
    const std::vector<float> actual = OverWidths([&](Parallel& parallel) {
      Guarded to(param), m1(m);
      step.run(parallel, n, param.data(), grad.data(), m1.data(), to.data());
      return Joined({to.Take(), m1.Take()});
    });
    for (size_t i = 0; i < param.size(); ++i) {
      const auto [made, moment] = step.expected(param[i], grad[i], m[i]);
      ASSERT_NEAR(actual[i], made, 3e-7) << step.name << ", element " << i;
      ASSERT_NEAR(actual[param.size() + i], moment, 3e-7) << step.name << ", element " << i;
    }
  }
}

TEST(Optimizer, AdamsDecayJoinsTheGradient) {
  const int64_t n = 1009;
  const std::vector<float> param = Uniform(n, 1), grad = Uniform(n, 2), m = Uniform(n, 3),
                           v = Uniform(n, 4, 0, 2);
  AdamwScalars s;
  s.lr = 3e-2;
  s.decay = 0.1;
  const std::vector<float> actual = OverWidths([&](Parallel& parallel) {
    Guarded p(param), m1(m), v1(v);
    Adam(parallel, n, s, p.data(), grad.data(), m1.data(), v1.data(), p.data(), m1.data(),
         v1.data());
    return Joined({p.Take(), m1.Take(), v1.Take()});
  });
  s.decay = 0;
  std::vector<float> joined(grad);
  for (size_t i = 0; i < joined.size(); ++i) joined[i] += 0.1f * param[i];
  const std::vector<float> expected = OverWidths([&](Parallel& parallel) {
    Guarded p(param), m1(m), v1(v);
    Adamw(parallel, n, s, p.data(), joined.data(), m1.data(), v1.data(), p.data(), m1.data(),
          v1.data());
    return Joined({p.Take(), m1.Take(), v1.Take()});
  });
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 4e-7) << i;
}

TEST(Optimizer, NoGradientLeavesAFreshParameter) {
  const std::vector<float> zero(5, 0.0f), param = Uniform(5, 1);
  Guarded p(param), m(zero), v(zero);
  SerialParallel serial;
  AdamwScalars s;
  s.lr = 0.1;
  Adamw(serial, 5, s, p.data(), zero.data(), m.data(), v.data(), p.data(), m.data(), v.data());
  EXPECT_TRUE(SameBits(p.Take(), param));
}

// The kernel's rule against Megatron-LM's own numbers: tests/op_suites/meaning_test.cc.
TEST(Optimizer, TheScaleFallsWhenOverflowsAreUsedUp) {
  const LossScaleRule rule = {4, 2, 2};
  LossScale state = {16, 1, 2};
  state = NextLossScale(state, false, rule);
  EXPECT_EQ(state.scale, 16);
  EXPECT_EQ(state.growth, 0);
  for (double scale : {8.0, 4.0, 4.0}) {
    state = NextLossScale(state, false, rule);
    EXPECT_EQ(state.scale, scale);
  }
  state = NextLossScale(state, true, rule);
  EXPECT_EQ(state.left, -2);  // a finite step gives none back,
  state = NextLossScale(state, true, rule);
  EXPECT_EQ(state.scale, 8);
  EXPECT_EQ(state.left, 2);  // growth does
}

}  // namespace
}  // namespace mgc::cpu
