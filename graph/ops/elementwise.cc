// Elementwise arithmetic.

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// Whether `scalar` is the scalar of f64 that may stand beside operands of any type.
bool IsForeignScalar(const TensorType& scalar, const TensorType& other) {
  return scalar.dims.empty() && scalar.dtype != other.dtype;
}

struct EvalAdd {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      typename M::Scalar sum = Aligned(c, 0, i);
      for (size_t k = 1; k < c.inputs.size(); ++k) {
        sum = c.model.Add(sum, Aligned(c, static_cast<int>(k), i));
      }
      return sum;
    });
  }
};

absl::Status AddGrad(GradContext& c) {
  if (c.output_grad(0) == kNone) return absl::OkStatus();
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.wants(i)) c.Add(i, SumToTrailing(c, c.output_grad(0), c.type(c.input(i)).ndim()));
  }
  return absl::OkStatus();
}

OpDef Add() {
  OpDef op;
  op.name = "add";
  op.doc = "Sum of all operands; those after the first may be broadcast over leading dims.";
  op.operands = {"x", "more..."};
  op.results = {"y"};
  op.check = [](const OpUse& use) -> absl::Status {
    for (const TensorType* operand : use.operands) {
      if (operand->dtype != use.operands[0]->dtype) {
        return Refuse("add", 2, "operands are of different element types");
      }
    }
    return CheckTrailing("add", use);
  };
  op.roles = {OpRole::kSum};
  op.rule_of = TrailingRule;
  op.linearity = Linearity::kJoint;
  op.grad = AddGrad;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalAdd>();
  op.cases = {{"f32[2,3], f32[2,3]"},
              {"f32[2,1,3], f32[3], f32[1,3], f32[2,1,3]"},
              {"f32[4], f32[]"},
              {"f32[5]"}};
  return op;
}

struct EvalSub {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Sub(Aligned(c, 0, i), Aligned(c, 1, i)); });
  }
};

OpDef Sub() {
  OpDef op;
  op.name = "sub";
  op.doc = "Difference x - y of equal shapes.";
  op.operands = {"x", "y"};
  op.results = {"z"};
  op.rule = "... -> ...";
  op.linearity = Linearity::kJoint;
  op.grad = [](GradContext& c) {
    const ValueId dz = c.output_grad(0);
    if (dz != kNone && c.wants(0)) c.Add(0, dz);
    if (dz != kNone && c.wants(1)) c.Add(1, Scaled(c, dz, -1));
    return absl::OkStatus();
  };
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalSub>();
  op.cases = {{"f32[2,3], f32[2,3]"}, {"f32[1], f32[1]"}, {"f64[], f64[]"}};
  return op;
}

struct EvalMul {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Mul(Aligned(c, 0, i), Aligned(c, 1, i)); });
  }
};

absl::Status MulGrad(GradContext& c) {
  const ValueId dz = c.output_grad(0);
  if (dz == kNone) return absl::OkStatus();
  const ValueId x = c.input(0);
  const ValueId y = c.input(1);
  if (c.wants(0)) c.Add(0, c.Emit("mul", {dz, y}));
  if (!c.wants(1)) return absl::OkStatus();
  if (IsForeignScalar(c.type(y), c.type(x))) {
    c.Add(1, c.Emit("weighted_sum", {dz, x}));
  } else {
    c.Add(1, SumToTrailing(c, c.Emit("mul", {dz, x}), c.type(y).ndim()));
  }
  return absl::OkStatus();
}

OpDef Mul() {
  OpDef op;
  op.name = "mul";
  op.doc = "Product of x and y; y may be broadcast over leading dims, or be a scalar of f64.";
  op.operands = {"x", "y"};
  op.results = {"z"};
  op.check = [](const OpUse& use) { return CheckTrailing("mul", use); };
  op.rule_of = TrailingRule;
  op.linearity = Linearity::kSeparate;
  op.grad = MulGrad;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalMul>();
  op.cases = {{"f32[2,3], f32[2,3]"},
              {"f32[2,1,3], f32[1,3]"},
              {"f32[2,3], f64[]"},
              {"f64[], f64[]"},
              {"f32[3], f32[]"}};
  return op;
}

struct EvalScale {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const auto value = c.model.Constant(c.attrs.Real("value"));
    FillResult(c, [&](int64_t i) { return c.model.Mul(value, Aligned(c, 0, i)); });
  }
};

OpDef Scale() {
  OpDef op;
  op.name = "scale";
  op.doc = "x times a constant.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"value", AttrKind::kReal}};
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) != kNone && c.wants(0)) {
      c.Add(0, Scaled(c, c.output_grad(0), c.attrs().Real("value")));
    }
    return absl::OkStatus();
  };
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalScale>();
  op.cases = {{"f32[2,3]", {{"value", -2.5}}}, {"f32[1]", {{"value", 0.0}}}};
  return op;
}

struct EvalInv {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Inv(Aligned(c, 0, i)); });
  }
};

OpDef Inv() {
  OpDef op;
  op.name = "inv";
  op.precision = Precision::kWide;
  op.doc = "1 / x.";
  op.operands = {"x"};
  op.results = {"y"};
  op.rule = "... -> ...";
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const ValueId square = c.Emit("mul", {c.output(0), c.output(0)});
    c.Add(0, c.Emit("mul", {Scaled(c, c.output_grad(0), -1), square}));
    return absl::OkStatus();
  };
  op.eval = EvalWith<EvalInv>();
  op.cases = {{"f32[2,3]", {}, 0.5, 2.0}, {"f64[]", {}, -2.0, -0.5}};
  return op;
}

struct EvalSqrt {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Fn("sqrt", {Aligned(c, 0, i)}); });
  }
};

OpDef Sqrt() {
  OpDef op;
  op.name = "sqrt";
  op.precision = Precision::kWide;
  op.doc = "Square root of x.";
  op.operands = {"x"};
  op.results = {"y"};
  op.rule = "... -> ...";
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const ValueId half = Scaled(c, c.output_grad(0), 0.5);
    c.Add(0, c.Emit("mul", {half, c.Emit("inv", {c.output(0)})}));
    return absl::OkStatus();
  };
  op.eval = EvalWith<EvalSqrt>();
  op.cases = {{"f32[2,3]", {}, 0.5, 2.0}, {"f64[]", {}, 0.5, 2.0}};
  return op;
}

struct EvalClipScale {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto safe = m.Add(ScalarOf(c, 0), m.Constant(1e-6));
    const auto ratio = m.Mul(ScalarOf(c, 1), m.Inv(safe));
    c.out(0).real[0] = m.Fn("min", {m.Constant(1), ratio});
  }
};

OpDef ClipScale() {
  OpDef op;
  op.name = "clip_scale";
  op.precision = Precision::kWide;
  op.doc = "Factor that clips gradients of a norm: min(1, max_norm / (norm + 1e-6)).";
  op.operands = {"norm", "max_norm"};
  op.results = {"factor"};
  op.rule = ", -> ";
  op.no_grad = "part of the update, which is not differentiated";
  op.eval = EvalWith<EvalClipScale>();
  op.cases = {{"f64[], f64[]", {}, 0.1, 2.0}, {"f64[], f64[]", {}, 0.5, 0.6}};
  return op;
}

}  // namespace

std::vector<OpDef> ElementwiseOps() {
  return {Add(), Sub(), Mul(), Scale(), Inv(), Sqrt(), ClipScale()};
}

}  // namespace mgc
