// The optimizer's step for one parameter, and what it needs where the loss is scaled.

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// Operands of adamw in order.
enum AdamwOperand {
  kParam,
  kGrad,
  kFirst,
  kSecond,
  kRate,
  kDecay,
  kBeta1,
  kBeta2,
  kEps,
  kCorrection1,
  kCorrection2,
  kClip,
  kApply  // of guarded_adamw
};

template <bool kGuarded>
struct EvalAdamw {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto one = m.Constant(1);
    const auto rest1 = m.Sub(one, ScalarOf(c, kBeta1));
    const auto rest2 = m.Sub(one, ScalarOf(c, kBeta2));
    const bool decays = c.attrs.Int("decay") != 0;
    const auto decay = decays ? ScalarOf(c, kDecay) : m.Constant(0);
    for (size_t i = 0; i < c.in(kParam).real.size(); ++i) {
      const auto& param = c.in(kParam).real[i];
      const auto g = m.Mul(c.in(kGrad).real[i], ScalarOf(c, kClip));
      const auto first = m.Add(m.Mul(ScalarOf(c, kBeta1), c.in(kFirst).real[i]), m.Mul(rest1, g));
      const auto second =
          m.Add(m.Mul(ScalarOf(c, kBeta2), c.in(kSecond).real[i]), m.Mul(rest2, m.Mul(g, g)));
      const auto mean = m.Mul(first, m.Inv(ScalarOf(c, kCorrection1)));
      const auto root = m.Fn("sqrt", {m.Mul(second, m.Inv(ScalarOf(c, kCorrection2)))});
      const auto step = m.Mul(mean, m.Inv(m.Add(root, ScalarOf(c, kEps))));
      const auto change = m.Add(step, m.Mul(decay, param));
      c.out(0).real[i] = Kept(c, m.Sub(param, m.Mul(ScalarOf(c, kRate), change)), kParam, i);
      c.out(1).real[i] = Kept(c, first, kFirst, i);
      c.out(2).real[i] = Kept(c, second, kSecond, i);
    }
  }

  // What a step makes of element `i` of an operand, or that element.
  template <class M>
  static typename M::Scalar Kept(const EvalContext<M>& c, const typename M::Scalar& made,
                                 int operand, size_t i) {
    if constexpr (!kGuarded) return made;
    return c.model.Select(ScalarOf(c, kApply), made, c.in(operand).real[i]);
  }
};

OpDef Adamw() {
  OpDef op;
  op.name = "adamw";
  op.precision = Precision::kWide;
  op.doc =
      "AdamW (Loshchilov, Hutter, arXiv 1711.05101) with bias corrections 1 - beta^step as "
      "operands; "
      "`decay` says whether weight decay applies.";
  op.operands = {"param", "grad",  "m",   "v",           "lr",          "decay",
                 "beta1", "beta2", "eps", "correction1", "correction2", "clip"};
  op.results = {"param", "m", "v"};
  op.attrs = {{"decay", AttrKind::kInt}};
  op.rule = "..., ..., ..., ..., , , , , , , , -> ..., ..., ...";
  op.no_grad = "part of the update, which is not differentiated";
  op.flops_per_point = 16;
  op.in_place = {{0, 0}, {1, 2}, {2, 3}};
  op.eval = EvalWith<EvalAdamw<false>>();
  const std::string scalars = ", f64[], f64[], f64[], f64[], f64[], f64[], f64[], f64[]";
  op.cases = {
      {"f32[2,3], f32[2,3], f32[2,3], f32[2,3]" + scalars, {{"decay", int64_t{1}}}, 0.1, 0.9},
      {"f32[1], f32[1], f32[1], f32[1]" + scalars, {{"decay", int64_t{0}}}, 0.1, 0.9}};
  return op;
}

OpDef GuardedAdamw() {
  OpDef op = Adamw();
  op.name = "guarded_adamw";
  op.doc = "adamw where `apply` is 1; where it is 0 all three results are the operands.";
  op.operands.push_back("apply");
  op.rule = "..., ..., ..., ..., , , , , , , , , -> ..., ..., ...";
  op.eval = EvalWith<EvalAdamw<true>>();
  for (OpCase& op_case : op.cases) op_case.operands += ", f64[]";
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

std::vector<OpDef> OptimizerOps() {
  return {Adamw(), GuardedAdamw(), IsFinite(), BiasCorrection(), NextLossScale()};
}

}  // namespace mgc
