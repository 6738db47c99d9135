// Steps over tensors of whole vectors and tails, in place, taken or not, against double precision.
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/optimizer/optimizer.h"
#include "kernels/cuda/testing/device_array.h"

namespace mgc::cuda {
namespace {

// The results of one element in double precision.
using Meaning = std::function<std::vector<double>(const std::vector<double>& x)>;

struct StepCase {
  IssueSteps step;
  std::vector<double> numbers;
  std::vector<int> kept;  // of each result
  size_t operands;
  Meaning meaning;
};

constexpr double kRate = 0.03, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-4;
constexpr double kCorrection1 = 0.3, kCorrection2 = 0.2, kClip = 0.7;

std::vector<double> AdamMeaning(const std::vector<double>& x, bool decoupled) {
  const double g = x[1] * kClip + (decoupled ? 0 : kDecay * x[0]);
  const double m = kBeta1 * x[2] + (1 - kBeta1) * g;
  const double v = kBeta2 * x[3] + (1 - kBeta2) * g * g;
  const double change = m / kCorrection1 / (std::sqrt(v / kCorrection2) + kEps);
  return {x[0] - kRate * (change + (decoupled ? kDecay * x[0] : 0)), m, v};
}

std::vector<StepCase> Steps() {
  const std::vector<double> adam = {kRate, kDecay,       kBeta1,       kBeta2,
                                    kEps,  kCorrection1, kCorrection2, kClip};
  return {
      {Adamw, adam, {0, 2, 3}, 4, [](const auto& x) { return AdamMeaning(x, true); }},
      {Adam, adam, {0, 2, 3}, 4, [](const auto& x) { return AdamMeaning(x, false); }},
      {Sgd,
       {kRate, kDecay, kBeta1, kClip},
       {0, 2},
       3,
       [](const auto& x) -> std::vector<double> {
         const double m = kBeta1 * x[2] + x[1] * kClip + kDecay * x[0];
         return {x[0] - kRate * m, m};
       }},
      {Lion,
       {kRate, kDecay, kBeta1, kBeta2, kClip},
       {0, 2},
       3,
       [](const auto& x) -> std::vector<double> {
         const double g = x[1] * kClip, mean = kBeta1 * x[2] + (1 - kBeta1) * g;
         const double sign = mean > 0 ? 1 : -1;
         return {x[0] - kRate * (sign + kDecay * x[0]), kBeta2 * x[2] + (1 - kBeta2) * g};
       }},
      {Nesterov,
       {kBeta1, kClip},
       {-1, 1},
       2,
       [](const auto& x) -> std::vector<double> {
         const double g = x[0] * kClip, m = kBeta1 * x[1] + (1 - kBeta1) * g;
         return {kBeta1 * m + (1 - kBeta1) * g, m};
       }},
      {DecayedStep,
       {kRate, kDecay},
       {0},
       2,
       [](const auto& x) -> std::vector<double> {
         return {x[0] - kRate * (x[1] + kDecay * x[0])};
       }},
  };
}

// Results of a step in the places of the operands they may take; `apply`: 0, 1, or -1 for a step
// that is not guarded.
std::vector<std::vector<float>> Taken(const StepCase& c,
                                      const std::vector<std::vector<float>>& operands, size_t shift,
                                      int apply) {
  const int64_t n = static_cast<int64_t>(operands[0].size());
  std::vector<std::unique_ptr<DeviceArray<float>>> in, out;
  for (const std::vector<float>& x : operands) {
    in.push_back(std::make_unique<DeviceArray<float>>(x, shift));
  }
  const DeviceArray<double> numbers(c.numbers), applies({static_cast<double>(apply)});
  StepArrays arrays;
  for (size_t i = 0; i < in.size(); ++i) arrays.operands[i] = in[i]->data();
  for (size_t i = 0; i < c.numbers.size(); ++i) arrays.numbers[i] = numbers.data() + i;
  if (apply >= 0) arrays.apply = applies.data();
  for (size_t r = 0; r < c.kept.size(); ++r) {
    arrays.kept[r] = c.kept[r];
    if (c.kept[r] < 0) {
      out.push_back(std::make_unique<DeviceArray<float>>(operands[0], shift));
    } else {
      out.push_back(std::move(in[static_cast<size_t>(c.kept[r])]));
    }
    arrays.results[r] = out.back()->data();
  }
  const StepPart part = {n, true, arrays};
  EXPECT_EQ(c.step(nullptr, &part, 1), 0);
  std::vector<std::vector<float>> results;
  results.reserve(out.size());
  for (const auto& result : out) results.push_back(result->Values());
  return results;
}

void ExpectStep(const StepCase& c, int64_t n) {
  SCOPED_TRACE(testing::Message() << n << " elements");
  std::vector<std::vector<float>> operands;
  operands.reserve(c.operands);
  for (size_t i = 0; i < c.operands; ++i) {
    operands.push_back(UniformFloats(n, static_cast<uint32_t>(i), 0.1f, 0.9f));
  }
  const std::vector<std::vector<float>> results = Taken(c, operands, 0, -1);
  EXPECT_EQ(results, Taken(c, operands, 1, 1)) << "bits depend on the place";
  const std::vector<std::vector<float>> skipped = Taken(c, operands, 0, 0);
  for (size_t r = 0; r < results.size(); ++r) {
    const std::vector<float> zeros(operands[0].size());
    EXPECT_EQ(skipped[r], c.kept[r] < 0 ? zeros : operands[static_cast<size_t>(c.kept[r])]);
  }
  for (size_t i = 0; i < operands[0].size(); ++i) {
    std::vector<double> x;
    x.reserve(operands.size());
    for (const std::vector<float>& operand : operands) x.push_back(operand[i]);
    const std::vector<double> expected = c.meaning(x);
    for (size_t r = 0; r < results.size(); ++r) {
      ASSERT_NEAR(results[r][i], expected[r], 1e-6) << "result " << r << "[" << i << "]";
    }
  }
}

TEST(CudaOptimizer, StepsOfAnySize) {
  const std::vector<StepCase> steps = Steps();
  for (size_t s = 0; s < steps.size(); ++s) {
    SCOPED_TRACE(testing::Message() << "step " << s);
    for (const int64_t n : {1, 3, 1003, 4096}) ExpectStep(steps[s], n);
  }
}

// More elements than a grid has threads.
TEST(CudaOptimizer, LargeTensors) {
  const StepCase step = Steps().back();
  const std::vector<std::vector<float>> operands = {UniformFloats(600003, 1),
                                                    UniformFloats(600003, 2)};
  const std::vector<float> made = Taken(step, operands, 1, -1)[0];
  for (size_t i = 0; i < made.size(); ++i) {
    ASSERT_NEAR(made[i], step.meaning({operands[0][i], operands[1][i]})[0], 1e-6) << i;
  }
}

// A part of many, in the memory of all; with or without decay.
StepPart PartAt(float* memory, int64_t stride, int64_t at, int64_t n, bool decays) {
  StepPart part;
  part.n = n;
  part.decays = decays;
  for (int i = 0; i < 4; ++i) part.arrays.operands[i] = memory + i * stride + at;
  part.arrays.results[0] = memory + at;
  part.arrays.results[1] = memory + 2 * stride + at;
  part.arrays.results[2] = memory + 3 * stride + at;
  for (int r = 0; r < 3; ++r) part.arrays.kept[r] = r == 0 ? 0 : r + 1;
  return part;
}

// More tensors than one launch has room for, aligned or not, one of them empty, some with numbers
// of their own: the bits of one launch for each.
TEST(CudaOptimizer, ManyTensorsInFewLaunches) {
  constexpr int64_t kStride = 4000;
  const DeviceArray<double> numbers(Steps()[0].numbers), others({0.01, 0, 0.9, 0.9, 1e-4, 1, 1, 1});
  const std::vector<float> before = UniformFloats(4 * kStride, 9, 0.1f, 0.9f);
  const auto stepped = [&](bool together) {
    const DeviceArray<float> memory(before);
    std::vector<StepPart> parts;
    int64_t at = 0;
    for (int64_t i = 0; at + 100 < kStride; ++i) {
      const int64_t n = i == 7 ? 0 : i * 5 % 67 + 1;
      StepPart& part = parts.emplace_back(PartAt(memory.data(), kStride, at, n, i % 2 == 0));
      const DeviceArray<double>& from = i % 50 == 49 ? others : numbers;
      for (int k = 0; k < 8; ++k) part.arrays.numbers[k] = from.data() + k;
      at += i % 3 == 0 ? (n + 3) / 4 * 4 : n;
    }
    EXPECT_GT(parts.size(), 88u);
    if (together) {
      EXPECT_EQ(Adamw(nullptr, parts.data(), static_cast<int>(parts.size())), 0);
    } else {
      for (const StepPart& part : parts) EXPECT_EQ(Adamw(nullptr, &part, 1), 0);
    }
    return memory.Values();
  };
  const std::vector<float> together = stepped(true);
  EXPECT_EQ(together, stepped(false));
  EXPECT_NE(together, before);
}

// An element that is no number keeps a step that is not taken from nothing.
TEST(CudaOptimizer, StepsThatAreNotTakenKeepNumbers) {
  const StepCase adamw = Steps().front();
  const std::vector<float> ones(7, 1.0f), none(7, NAN);
  const std::vector<std::vector<float>> results = Taken(adamw, {ones, none, ones, ones}, 0, 0);
  for (const std::vector<float>& result : results) EXPECT_EQ(result, ones);
}

TEST(CudaOptimizer, FlagsWhatIsFinite) {
  const DeviceArray<float> x({0.0f, -3e38f, INFINITY, -INFINITY, NAN}), y(x.Values());
  ASSERT_EQ(IsFinite(nullptr, 5, x.data(), y.data()), 0);
  EXPECT_EQ(y.Values(), (std::vector<float>{1, 1, 0, 0, 0}));
}

// scale, growth, left, finite, min_scale, window, hysteresis.
std::vector<double> NextScale(const std::vector<double>& numbers) {
  const DeviceArray<double> state(numbers);
  LossScaleNumbers n = {};
  for (size_t i = 0; i < 7; ++i) n.numbers[i] = state.data() + i;
  for (size_t r = 0; r < 3; ++r) n.results[r] = state.data() + r;
  EXPECT_EQ(NextLossScale(nullptr, n), 0);
  std::vector<double> next = state.Values();
  next.resize(3);
  return next;
}

TEST(CudaOptimizer, LossScales) {
  using State = std::vector<double>;
  EXPECT_EQ(NextScale({8, 1, 2, 1, 1, 4, 2}), (State{8, 2, 2}));
  EXPECT_EQ(NextScale({8, 3, 1, 1, 1, 4, 2}), (State{16, 0, 2}));
  EXPECT_EQ(NextScale({8, 3, 2, 0, 1, 4, 2}), (State{8, 0, 1}));
  EXPECT_EQ(NextScale({8, 3, 1, 0, 1, 4, 2}), (State{4, 0, 0}));
  EXPECT_EQ(NextScale({8, 3, 0, 0, 6, 4, 2}), (State{6, 0, -1}));
}

}  // namespace
}  // namespace mgc::cuda
