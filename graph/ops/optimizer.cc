// The optimizer's step for one parameter.

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
  kClip
};

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
      c.out(0).real[i] = m.Sub(param, m.Mul(ScalarOf(c, kRate), change));
      c.out(1).real[i] = first;
      c.out(2).real[i] = second;
    }
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
  op.eval = EvalWith<EvalAdamw>();
  const std::string scalars = ", f64[], f64[], f64[], f64[], f64[], f64[], f64[], f64[]";
  op.cases = {
      {"f32[2,3], f32[2,3], f32[2,3], f32[2,3]" + scalars, {{"decay", int64_t{1}}}, 0.1, 0.9},
      {"f32[1], f32[1], f32[1], f32[1]" + scalars, {{"decay", int64_t{0}}}, 0.1, 0.9}};
  return op;
}

}  // namespace

std::vector<OpDef> OptimizerOps() { return {Adamw()}; }

}  // namespace mgc
