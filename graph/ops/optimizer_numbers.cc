// Numbers of a step that its optimizers take, and what they need where the loss is scaled.

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

struct EvalInverseNorm {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto root = m.Fn("sqrt", {ScalarOf(c, 0)});
    c.out(0).real[0] = m.Inv(m.Add(root, m.Constant(c.attrs.Real("eps"))));
  }
};

OpDef InverseNorm() {
  OpDef op;
  op.name = "inverse_norm";
  op.precision = Precision::kWide;
  op.doc = "1 over a norm, of which the square is given, plus eps.";
  op.operands = {"squares"};
  op.results = {"inverse"};
  op.attrs = {{"eps", AttrKind::kReal}};
  op.rule = " -> ";
  op.no_grad = "part of the update, which is not differentiated";
  op.eval = EvalWith<EvalInverseNorm>();
  op.cases = {{"f64[]", {{"eps", 1e-7}}, 0.5, 4.0}};
  return op;
}

struct EvalIsFinite {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Fn("is_finite", {Aligned(c, 0, i)}); });
  }
};

OpDef IsFinite() {
  OpDef op;
  op.name = "is_finite";
  op.precision = Precision::kWide;
  op.doc = "1 where x is a number, 0 where it is infinite or none.";
  op.operands = {"x"};
  op.results = {"flag"};
  op.rule = "... -> ...";
  op.no_grad = "is a flag";
  op.eval = EvalWith<EvalIsFinite>();
  op.cases = {{"f64[]"}, {"f32[2,3]"}};
  return op;
}

struct EvalBiasCorrection {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto one = m.Constant(1);
    const auto step = m.Add(ScalarOf(c, 1), one);
    c.out(0).real[0] = m.Sub(one, m.Fn("power", {ScalarOf(c, 0), step}));
  }
};

OpDef BiasCorrection() {
  OpDef op;
  op.name = "bias_correction";
  op.precision = Precision::kWide;
  op.doc =
      "What adamw divides a moment by in the step behind `steps` others: 1 - beta^(steps + 1).";
  op.operands = {"beta", "steps"};
  op.results = {"correction"};
  op.rule = ", -> ";
  op.no_grad = "part of the update, which is not differentiated";
  op.eval = EvalWith<EvalBiasCorrection>();
  op.cases = {{"f64[], f64[]", {}, 0.1, 0.9}};
  return op;
}

// Operands of next_loss_scale in order.
enum ScaleOperand { kScale, kGrowth, kLeft, kFinite, kMinScale, kWindow, kHysteresis };

struct EvalNextLossScale {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto zero = m.Constant(0);
    const auto& scale = ScalarOf(c, kScale);
    const auto& finite = ScalarOf(c, kFinite);
    const auto grown = m.Add(ScalarOf(c, kGrowth), m.Constant(1));
    const auto grows = m.Fn("equal", {grown, ScalarOf(c, kWindow)});
    const auto left = m.Sub(ScalarOf(c, kLeft), m.Constant(1));
    const auto falls = m.Fn("at_most", {left, zero});
    const auto lower = m.Max(m.Mul(scale, m.Constant(0.5)), ScalarOf(c, kMinScale));
    const auto higher = m.Mul(scale, m.Constant(2));
    c.out(0).real[0] =
        m.Select(finite, m.Select(grows, higher, scale), m.Select(falls, lower, scale));
    c.out(1).real[0] = m.Select(finite, m.Select(grows, zero, grown), zero);
    c.out(2).real[0] =
        m.Select(finite, m.Select(grows, ScalarOf(c, kHysteresis), ScalarOf(c, kLeft)), left);
  }
};

OpDef NextLossScale() {
  OpDef op;
  op.name = "next_loss_scale";
  op.precision = Precision::kWide;
  op.doc =
      "Megatron-LM's dynamic loss scale behind a step: doubled after `window` finite steps in a "
      "row; halved, but not below `min_scale`, when the overflows `left` are used up, of which "
      "there are `hysteresis` behind each growth.";
  op.operands = {"scale", "growth", "left", "finite", "min_scale", "window", "hysteresis"};
  op.results = {"scale", "growth", "left"};
  op.rule = ", , , , , , -> , , ";
  op.no_grad = "part of the update, which is not differentiated";
  op.in_place = {{0, 0}, {1, 1}, {2, 2}};
  op.eval = EvalWith<EvalNextLossScale>();
  const std::string scalars = "f64[], f64[], f64[], f64[], f64[], f64[], f64[]";
  op.cases = {{scalars, {}, 0.5, 4.0}};
  return op;
}

}  // namespace

std::vector<OpDef> OptimizerNumberOps() {
  return {InverseNorm(), IsFinite(), BiasCorrection(), NextLossScale()};
}

}  // namespace mgc
