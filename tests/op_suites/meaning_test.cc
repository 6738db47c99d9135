// Meanings of ops against formulas written another way. (Gradients and shardings are derived from
// the meanings themselves; whole models are compared with another implementation in tests/golden.)

#include <cmath>

#include "graph/base/random.h"
#include "graph/ops/rope_frequencies.h"
#include "tests/op_suites/small_graph.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

constexpr double kTolerance = 1e-13;

RealTensor Real(std::vector<int64_t> shape, std::vector<double> values) {
  return {std::move(shape), false, std::move(values), {}};
}

RealTensor Index(std::vector<int64_t> values) {
  return {{static_cast<int64_t>(values.size())}, true, {}, std::move(values)};
}

ValueId Put(SmallGraph& graph, RealTensor tensor) {
  TensorType type{tensor.is_index ? DType::kI64 : DType::kF64, {}};
  for (int64_t size : tensor.shape) type.dims.push_back({size, ""});
  return graph.AddInput(type, std::move(tensor));
}

std::vector<double> Draw(int count, std::mt19937_64& random) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& x : values) x = std::uniform_real_distribution<double>(-2, 2)(random);
  return values;
}

// Batch 1, 3 queries at positions 1, 4, 5; 6 keys at 0 .. 5; 4 heads over 2 kv heads; depth 2.
TEST(MeaningTest, AttentionIsAMaskedSoftmaxOfGroupedHeads) {
  constexpr double kDrop = 0.4;
  std::mt19937_64 random(kDrawSeed);
  const std::vector<double> q = Draw(3 * 4 * 2, random);
  const std::vector<double> k = Draw(6 * 2 * 2, random);
  const std::vector<double> v = Draw(6 * 2 * 2, random);
  const std::vector<int64_t> positions = {1, 4, 5};
  SmallGraph graph;
  const std::vector<ValueId> made =
      graph.EmitAll("attention",
                    {Put(graph, Real({1, 3, 4, 2}, q)), Put(graph, Real({1, 6, 2, 2}, k)),
                     Put(graph, Real({1, 6, 2, 2}, v)), Put(graph, Index(positions)),
                     Put(graph, Index({0, 1, 2, 3, 4, 5}))},
                    {{"scale", 0.5}, {"p", kDrop}, {"key", "layers.0"}});
  std::vector<double> o(q.size(), 0.0);
  std::vector<double> lse(q.size() / 2);
  for (int s = 0; s < 3; ++s) {
    for (int h = 0; h < 4; ++h) {
      std::vector<double> weights;
      double sum = 0;
      for (int t = 0; t <= positions[s]; ++t) {
        const int q_row = (s * 4 + h) * 2;
        const int k_row = (t * 2 + h / 2) * 2;
        weights.push_back(std::exp(0.5 * (q[q_row] * k[k_row] + q[q_row + 1] * k[k_row + 1])));
        sum += weights.back();
      }
      const int row = h * 3 + s;
      lse[row] = std::log(sum);
      for (size_t t = 0; t < weights.size(); ++t) {
        const uint64_t index = static_cast<uint64_t>(row) * 6 + t;
        if (!KeepBit(kDropoutSeed, StreamOf("layers.0"), index, kDrop)) continue;
        for (int d = 0; d < 2; ++d) {
          o[(s * 4 + h) * 2 + d] += weights[t] / sum / (1 - kDrop) * v[(t * 2 + h / 2) * 2 + d];
        }
      }
    }
  }
  ExpectClose(graph.value(made[0]).real, o, kTolerance, "o");
  ExpectClose(graph.value(made[1]).real, lse, kTolerance, "lse");
}

TEST(MeaningTest, AQueryThatSeesNoKeyGivesZero) {
  SmallGraph graph;
  const std::vector<ValueId> made = graph.EmitAll(
      "attention",
      {Put(graph, Real({1, 1, 1, 1}, {1})), Put(graph, Real({1, 1, 1, 1}, {1})),
       Put(graph, Real({1, 1, 1, 1}, {1})), Put(graph, Index({0})), Put(graph, Index({3}))},
      {{"scale", 1.0}, {"p", 0.0}, {"key", ""}});
  EXPECT_EQ(graph.value(made[0]).real[0], 0.0);
  EXPECT_EQ(graph.value(made[1]).real[0], -std::numeric_limits<double>::infinity());
}

TEST(MeaningTest, CrossEntropyFromSmallOps) {
  std::mt19937_64 random(kDrawSeed);
  const std::vector<double> logits = Draw(2 * 5, random);
  const std::vector<int64_t> targets = {3, 0};
  SmallGraph graph;
  const ValueId l = Put(graph, Real({2, 5}, logits));
  const ValueId m = graph.Emit("reduce_max", {l}, {{"dims", std::vector<int64_t>{1}}});
  const ValueId z = graph.Emit("exp_sum", {l, m});
  const ValueId lse = graph.Emit("log_shift", {z, m});
  const ValueId picked = graph.Emit("pick", {l, Put(graph, Index(targets))});
  const ValueId loss = graph.Emit("sub", {lse, picked});
  for (int64_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (int v = 0; v < 5; ++v) sum += std::exp(logits[row * 5 + v]);
    const double expected = -std::log(std::exp(logits[row * 5 + targets[row]]) / sum);
    EXPECT_NEAR(graph.value(loss).real[row], expected, kTolerance);
  }
}

TEST(MeaningTest, NormsStandardizeRows) {
  SmallGraph graph;
  const ValueId x = Put(graph, Real({1, 4}, {1, 2, 3, 6}));
  const ValueId w = Put(graph, Real({4}, {1, 1, 1, 2}));
  const ValueId b = Put(graph, Real({4}, {0, 0, 1, 0}));
  const std::vector<ValueId> layer = graph.EmitAll("layer_norm", {x, w, b}, {{"eps", 0.5}});
  // Mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5.
  ExpectClose(graph.value(layer[0]).real, {-1.0, -0.5, 1.0, 3.0}, kTolerance, "layer_norm");
  ExpectClose(graph.value(layer[1]).real, {3.0}, kTolerance, "mean");
  ExpectClose(graph.value(layer[2]).real, {0.5}, kTolerance, "rstd");
  // Mean square 50 / 4 = 12.5.
  const std::vector<ValueId> rms = graph.EmitAll("rms_norm", {x, w}, {{"eps", 3.5}});
  ExpectClose(graph.value(rms[0]).real, {0.25, 0.5, 0.75, 3.0}, kTolerance, "rms_norm");
  ExpectClose(graph.value(rms[1]).real, {0.25}, kTolerance, "rstd");
}

TEST(MeaningTest, RopeRotatesHalvesAndItsInverseUndoesIt) {
  SmallGraph graph;
  const ValueId x = Put(graph, Real({1, 2, 1, 4}, {1, 2, 3, 4, 1, 2, 3, 4}));
  const ValueId pos = Put(graph, Index({0, 5}));
  const ValueId y = graph.Emit("rope", {x, pos}, {{"theta", 100.0}});
  // Frequencies 1 and 100^(-1/2) = 0.1.
  const std::vector<double> expected = {1,
                                        2,
                                        3,
                                        4,
                                        std::cos(5.0) - 3 * std::sin(5.0),
                                        2 * std::cos(0.5) - 4 * std::sin(0.5),
                                        3 * std::cos(5.0) + std::sin(5.0),
                                        4 * std::cos(0.5) + 2 * std::sin(0.5)};
  ExpectClose(graph.value(y).real, expected, kTolerance, "rope");
  const ValueId back = graph.Emit("rope", {y, pos}, {{"theta", 100.0}, {"inverse", int64_t{1}}});
  ExpectClose(graph.value(back).real, graph.value(x).real, kTolerance, "inverse");
}

TEST(MeaningTest, Llama3SlowsLongWavesDown) {
  const Attrs plain = {{"theta", 500000.0}};
  const Attrs stretched = {
      {"theta", 500000.0}, {"factor", 8.0}, {"low", 1.0}, {"high", 4.0}, {"original", 8192.0}};
  const std::vector<double> before = RopeFrequencies(plain, 128);
  const std::vector<double> after = RopeFrequencies(stretched, 128);
  ASSERT_EQ(after.size(), 64u);
  int kept = 0;
  int slowed = 0;
  for (size_t j = 0; j < before.size(); ++j) {
    const double wavelength = 2 * std::acos(-1.0) / before[j];
    if (wavelength < 8192.0 / 4) {
      EXPECT_EQ(after[j], before[j]);
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_DOUBLE_EQ(after[j], before[j] / 8);
      ++slowed;
    } else {
      const double blend = (8192.0 / wavelength - 1) / 3;
      EXPECT_NEAR(after[j], before[j] * (blend + (1 - blend) / 8), 1e-15);
    }
  }
  EXPECT_EQ(kept, 29);
  EXPECT_EQ(slowed, 29);
}

TEST(MeaningTest, DropoutKeepsByLogicalIndex) {
  SmallGraph graph;
  const ValueId x = Put(graph, Real({3, 4}, std::vector<double>(12, 1.0)));
  const ValueId y = graph.Emit("dropout", {x}, {{"p", 0.5}, {"key", "embed"}});
  for (uint64_t i = 0; i < 12; ++i) {
    const double expected = KeepBit(kDropoutSeed, StreamOf("embed"), i, 0.5) ? 2.0 : 0.0;
    EXPECT_EQ(graph.value(y).real[i], expected) << i;
  }
}

TEST(MeaningTest, AdamwTakesTheFirstStep) {
  SmallGraph graph;
  std::vector<ValueId> operands;
  for (double x : {2.0, -3.0, 0.0, 0.0}) operands.push_back(Put(graph, Real({1}, {x})));
  const double lr = 0.1;
  const double eps = 1e-8;
  for (double x : {lr, 0.01, 0.9, 0.99, eps, 0.1, 0.01, 0.5}) {
    operands.push_back(Put(graph, Real({}, {x})));
  }
  const std::vector<ValueId> decayed = graph.EmitAll("adamw", operands, {{"decay", int64_t{1}}});
  const std::vector<ValueId> plain = graph.EmitAll("adamw", operands, {{"decay", int64_t{0}}});
  // The clipped gradient is -1.5; corrected, the first step is lr times its sign.
  const double step = -1.5 / (1.5 + eps);
  EXPECT_NEAR(graph.value(plain[0]).real[0], 2.0 - lr * step, kTolerance);
  EXPECT_NEAR(graph.value(decayed[0]).real[0], 2.0 - lr * (step + 0.01 * 2.0), kTolerance);
  EXPECT_NEAR(graph.value(plain[1]).real[0], 0.1 * -1.5, kTolerance);
  EXPECT_NEAR(graph.value(plain[2]).real[0], 0.01 * 2.25, kTolerance);
}

TEST(MeaningTest, GuardedAdamwStepsOrKeepsAll) {
  SmallGraph graph;
  std::vector<ValueId> operands;
  for (double x : {2.0, -3.0, 0.25, 0.5}) operands.push_back(Put(graph, Real({1}, {x})));
  for (double x : {0.1, 0.01, 0.9, 0.99, 1e-8, 0.1, 0.01, 0.5}) {
    operands.push_back(Put(graph, Real({}, {x})));
  }
  const Attrs decay = {{"decay", int64_t{1}}};
  const std::vector<ValueId> plain = graph.EmitAll("adamw", operands, decay);
  operands.push_back(Put(graph, Real({}, {1.0})));
  const std::vector<ValueId> taken = graph.EmitAll("guarded_adamw", operands, decay);
  // An overflow makes every number of the step none.
  const double kNan = std::numeric_limits<double>::quiet_NaN();
  operands[1] = Put(graph, Real({1}, {kNan}));
  operands[11] = Put(graph, Real({}, {kNan}));
  operands[12] = Put(graph, Real({}, {0.0}));
  const std::vector<ValueId> kept = graph.EmitAll("guarded_adamw", operands, decay);
  const double before[] = {2.0, 0.25, 0.5};
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(graph.value(taken[r]).real, graph.value(plain[r]).real);
    EXPECT_EQ(graph.value(kept[r]).real[0], before[r]);
  }
}

TEST(MeaningTest, OnlyNumbersAreFinite) {
  SmallGraph graph;
  const double inf = std::numeric_limits<double>::infinity();
  const ValueId x = Put(graph, Real({5}, {0.0, -1e308, inf, -inf, inf - inf}));
  EXPECT_EQ(graph.value(graph.Emit("is_finite", {x})).real, (std::vector<double>{1, 1, 0, 0, 0}));
}

TEST(MeaningTest, BiasCorrectionOfTheStepBehind) {
  SmallGraph graph;
  const ValueId beta = Put(graph, Real({}, {0.9})), steps = Put(graph, Real({}, {2.0}));
  EXPECT_NEAR(graph.value(graph.Emit("bias_correction", {beta, steps})).real[0], 1 - 0.729,
              kTolerance);
}

// What the rule of Megatron-LM's dynamic scaler (megatron/core/optimizer/grad_scaler.py) makes of
// overflows (1) and good steps (0).
TEST(MeaningTest, NextLossScaleIsMegatrons) {
  struct Trace {
    double window, hysteresis;
    std::vector<int> overflows;
    std::vector<int> scales;  // behind each step, as powers of two
  };
  const Trace traces[] = {
      {4, 2, {1, 0, 1, 0, 0, 0, 0, 0, 1, 1}, {16, 16, 15, 15, 15, 15, 16, 16, 16, 15}},
      {3, 1, {1, 0, 0, 0, 0, 0, 0, 1}, {15, 15, 15, 16, 16, 16, 17, 16}},
      {1000, 2, {1, 1, 1, 0}, {16, 15, 14, 14}},
      {2, 2, {0, 0, 0, 0, 1, 0, 1, 1, 0, 0}, {16, 17, 17, 18, 18, 18, 17, 16, 16, 17}},
  };
  for (const Trace& trace : traces) {
    SmallGraph graph;
    std::vector<double> state = {65536, 0, trace.hysteresis};
    for (size_t i = 0; i < trace.overflows.size(); ++i) {
      std::vector<ValueId> operands;
      for (double x : {state[0], state[1], state[2], trace.overflows[i] == 0 ? 1.0 : 0.0, 1.0,
                       trace.window, trace.hysteresis}) {
        operands.push_back(Put(graph, Real({}, {x})));
      }
      const std::vector<ValueId> next = graph.EmitAll("next_loss_scale", operands, {});
      for (size_t k = 0; k < 3; ++k) state[k] = graph.value(next[k]).real[0];
      EXPECT_EQ(state[0], std::ldexp(1.0, trace.scales[i])) << "step " << i;
    }
  }
}

TEST(MeaningTest, TheLossScaleFallsToItsLeastAndNoFurther) {
  SmallGraph graph;
  std::vector<ValueId> operands;
  for (double x : {12.0, 5.0, 1.0, 0.0, 8.0, 1000.0, 2.0}) {
    operands.push_back(Put(graph, Real({}, {x})));
  }
  EXPECT_EQ(graph.value(graph.EmitAll("next_loss_scale", operands, {})[0]).real[0], 8.0);
}

TEST(MeaningTest, ClipScaleNeverExceedsOne) {
  SmallGraph graph;
  const ValueId small = Put(graph, Real({}, {0.5}));
  const ValueId large = Put(graph, Real({}, {4.0}));
  EXPECT_EQ(graph.value(graph.Emit("clip_scale", {small, large})).real[0], 1.0);
  EXPECT_NEAR(graph.value(graph.Emit("clip_scale", {large, small})).real[0], 0.5 / (4.0 + 1e-6),
              kTolerance);
}

// GELU's tanh form at points whose values the definition gives to 15 digits.
TEST(MeaningTest, Activations) {
  SmallGraph graph;
  const ValueId x = Put(graph, Real({3}, {0.0, 1.0, -2.0}));
  const std::vector<double> gelu = graph.value(graph.Emit("gelu", {x})).real;
  const double c = std::sqrt(2 / std::acos(-1.0));
  EXPECT_EQ(gelu[0], 0.0);
  EXPECT_NEAR(gelu[1], 0.5 * (1 + std::tanh(c * 1.044715)), kTolerance);
  EXPECT_NEAR(gelu[2], -1.0 * (1 + std::tanh(c * (-2 - 8 * 0.044715))), kTolerance);
  const std::vector<double> silu = graph.value(graph.Emit("silu", {x})).real;
  EXPECT_NEAR(silu[1], 1 / (1 + std::exp(-1.0)), kTolerance);
  EXPECT_NEAR(silu[2], -2 / (1 + std::exp(2.0)), kTolerance);
}

TEST(MeaningTest, MatmulIsAnEinsum) {
  SmallGraph graph;
  const ValueId a = Put(graph, Real({2, 3}, {1, 2, 3, 4, 5, 6}));
  const ValueId b = Put(graph, Real({2, 3}, {1, 0, 2, 0, 1, 1}));
  const ValueId c = graph.Emit("matmul", {a, b}, {{"spec", "m k, n k -> n m"}});
  EXPECT_EQ(graph.value(c).real, (std::vector<double>{7, 16, 5, 11}));
}

TEST(MeaningTest, Movement) {
  SmallGraph graph;
  const ValueId x = Put(graph, Real({2, 3}, {1, 2, 3, 4, 5, 6}));
  const std::vector<int64_t> swap = {1, 0};
  EXPECT_EQ(graph.value(graph.Emit("transpose", {x}, {{"perm", swap}})).real,
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  const ValueId part =
      graph.Emit("slice", {x}, {{"dim", int64_t{1}}, {"begin", int64_t{1}}, {"end", int64_t{3}}});
  EXPECT_EQ(graph.value(part).real, (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(graph.value(graph.Emit("concat", {part, x}, {{"dim", int64_t{1}}})).real,
            (std::vector<double>{2, 3, 1, 2, 3, 5, 6, 4, 5, 6}));
  const ValueId rows = Put(graph, Index({1, 1, 0}));
  EXPECT_EQ(graph.value(graph.Emit("lookup", {x, rows})).real,
            (std::vector<double>{4, 5, 6, 4, 5, 6, 1, 2, 3}));
}

}  // namespace
}  // namespace mgc
