// Softmax over the last dim, whole on every rank. Attention and cross-entropy say theirs in pieces,
// so that the dim may be cut; this is for models that need the probabilities themselves.

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// y = exp(x - m) / sum exp(x - m), m the row's maximum.
struct EvalSoftmax {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const int64_t d = c.in(0).shape.back();
    for (int64_t begin = 0; begin < c.in(0).size(); begin += d) {
      auto max = m.NegInf();
      for (int64_t i = begin; i < begin + d; ++i) max = m.Max(max, c.in(0).real[i]);
      auto sum = m.Constant(0);
      for (int64_t i = begin; i < begin + d; ++i) {
        c.out(0).real[i] = m.ExpDiff(c.in(0).real[i], max);
        sum = m.Add(sum, c.out(0).real[i]);
      }
      const auto inverse = m.Inv(sum);
      for (int64_t i = begin; i < begin + d; ++i) {
        c.out(0).real[i] = m.Mul(c.out(0).real[i], inverse);
      }
    }
  }
};

// dx = y * (dy - sum(dy * y))
struct EvalSoftmaxGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const int64_t d = c.in(0).shape.back();
    for (int64_t begin = 0; begin < c.in(0).size(); begin += d) {
      auto dot = m.Constant(0);
      for (int64_t i = begin; i < begin + d; ++i) {
        dot = m.Add(dot, m.Mul(c.in(0).real[i], c.in(1).real[i]));
      }
      for (int64_t i = begin; i < begin + d; ++i) {
        c.out(0).real[i] = m.Mul(c.in(1).real[i], m.Sub(c.in(0).real[i], dot));
      }
    }
  }
};

// The maximum and the sum of each row.
int64_t SoftmaxWorkspace(const OpUse& use) {
  std::vector<int64_t> rows = SizesOf(*use.operands[0]);
  if (!rows.empty()) rows.pop_back();
  return 2 * NumElements(rows) * SizeOf(WideOf(use.operands[0]->dtype));
}

OpDef Softmax() {
  OpDef op;
  op.name = "softmax";
  op.doc = "Softmax over the last dim.";
  op.operands = {"x"};
  op.results = {"y"};
  op.rule = "... d! -> ... d!";
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) != kNone && c.wants(0)) {
      c.Add(0, c.Emit("softmax_grad", {c.output_grad(0), c.output(0)}));
    }
    return absl::OkStatus();
  };
  op.flops_per_point = 5;
  op.workspace = SoftmaxWorkspace;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalSoftmax>();
  op.cases = {{"f32[2,3,5]", {}, -4.0, 4.0}, {"f32[7]"}, {"f32[3,1]"}};
  return op;
}

OpDef SoftmaxGrad() {
  OpDef op;
  op.name = "softmax_grad";
  op.doc = "Gradient of softmax, from its result.";
  op.operands = {"dy", "y"};
  op.results = {"dx"};
  op.rule = "... d!, ... d! -> ... d!";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = "a gradient itself; second derivatives are not taken";
  op.flops_per_point = 4;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalSoftmaxGrad>();
  op.cases = {{"f32[2,3,5], f32[2,3,5]"}, {"f32[7], f32[7]"}};
  return op;
}

}  // namespace

std::vector<OpDef> SoftmaxOps() { return {Softmax(), SoftmaxGrad()}; }

}  // namespace mgc
