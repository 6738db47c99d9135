// Activation functions and their gradients.

#include "absl/strings/str_cat.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

constexpr char kSecondOrder[] = "a gradient itself; second derivatives are not taken";

// Names of a function, its derivative, and the gate made of it: f(gate) * up.
struct NameGelu {
  static constexpr absl::string_view kName = "gelu";
  static constexpr absl::string_view kGrad = "gelu_grad";
  static constexpr absl::string_view kGate = "geglu";
  static constexpr absl::string_view kGateGrad = "geglu_grad";
};
struct NameGeluErf {
  static constexpr absl::string_view kName = "gelu_erf";
  static constexpr absl::string_view kGrad = "gelu_erf_grad";
};
struct NameSilu {
  static constexpr absl::string_view kName = "silu";
  static constexpr absl::string_view kGrad = "silu_grad";
  static constexpr absl::string_view kGate = "swiglu";
  static constexpr absl::string_view kGateGrad = "swiglu_grad";
};
struct NameSoftplus {
  static constexpr absl::string_view kName = "softplus";
  static constexpr absl::string_view kGrad = "softplus_grad";
};

// f(x)
template <class Name>
struct EvalActivation {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Fn(Name::kName, {Aligned(c, 0, i)}); });
  }
};

// dy * f'(x)
template <class Name>
struct EvalActivationGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      return c.model.Mul(Aligned(c, 0, i), c.model.Fn(Name::kGrad, {Aligned(c, 1, i)}));
    });
  }
};

template <class Name>
OpDef Activation(std::string doc, double flops) {
  OpDef op;
  op.name = std::string(Name::kName);
  op.doc = std::move(doc);
  op.operands = {"x"};
  op.results = {"y"};
  op.rule = "... -> ...";
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) != kNone && c.wants(0)) {
      c.Add(0, c.Emit(Name::kGrad, {c.output_grad(0), c.input(0)}));
    }
    return absl::OkStatus();
  };
  op.flops_per_point = flops;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalActivation<Name>>();
  op.cases = {{"f32[2,3]", {}, -3.0, 3.0}, {"f32[1]"}, {"f32[5,1,7]", {}, -12.0, 12.0}};
  return op;
}

template <class Name>
OpDef ActivationGrad(double flops) {
  OpDef op;
  op.name = std::string(Name::kGrad);
  op.doc = "dy times the derivative at x.";
  op.operands = {"dy", "x"};
  op.results = {"dx"};
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = flops;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalActivationGrad<Name>>();
  op.cases = {{"f32[2,3], f32[2,3]", {}, -3.0, 3.0},
              {"f32[1], f32[1]"},
              {"f32[5,1,7], f32[5,1,7]", {}, -12.0, 12.0}};
  return op;
}

template <class Name>
struct EvalGate {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      return c.model.Mul(c.model.Fn(Name::kName, {Aligned(c, 0, i)}), Aligned(c, 1, i));
    });
  }
};

template <class Name>
OpDef Gate(double flops) {
  OpDef op;
  op.name = std::string(Name::kGate);
  op.doc = absl::StrCat(Name::kName, "(gate) * up (Shazeer, arXiv 2002.05202).");
  op.operands = {"gate", "up"};
  op.results = {"y"};
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {1};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !(c.wants(0) || c.wants(1))) return absl::OkStatus();
    const std::vector<ValueId> made =
        c.EmitAll(Name::kGateGrad, {c.output_grad(0), c.input(0), c.input(1)});
    for (int i = 0; i < 2; ++i) {
      if (c.wants(i)) c.Add(i, made[static_cast<size_t>(i)]);
    }
    return absl::OkStatus();
  };
  op.flops_per_point = flops;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalGate<Name>>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    return {c.Emit("mul", {c.Emit(Name::kName, {c.input(0)}), c.input(1)})};
  };
  op.cases = {{"f32[2,3], f32[2,3]", {}, -3.0, 3.0}, {"f32[1,5], f32[1,5]"}};
  return op;
}

template <class Name>
struct EvalGateGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    for (size_t i = 0; i < c.in(0).real.size(); ++i) {
      const auto& dy = c.in(0).real[i];
      const auto& gate = c.in(1).real[i];
      c.out(0).real[i] = m.Mul(m.Mul(dy, c.in(2).real[i]), m.Fn(Name::kGrad, {gate}));
      c.out(1).real[i] = m.Mul(dy, m.Fn(Name::kName, {gate}));
    }
  }
};

template <class Name>
OpDef GateGrad(double flops) {
  OpDef op;
  op.name = std::string(Name::kGateGrad);
  op.doc = absl::StrCat("Gradients of ", Name::kGate, " with respect to gate and up.");
  op.operands = {"dy", "gate", "up"};
  op.results = {"dgate", "dup"};
  op.rule = "... -> ..., ...";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = flops;
  op.in_place = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}};
  op.eval = EvalWith<EvalGateGrad<Name>>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    const ValueId dy = c.input(0);
    const ValueId dgate = c.Emit(Name::kGrad, {c.Emit("mul", {dy, c.input(2)}), c.input(1)});
    return {dgate, c.Emit("mul", {dy, c.Emit(Name::kName, {c.input(1)})})};
  };
  op.cases = {{"f32[2,3], f32[2,3], f32[2,3]", {}, -3.0, 3.0}, {"f32[1], f32[1], f32[1]"}};
  return op;
}

// The argument of the bounded function: x / cap.
template <class M>
typename M::Scalar OverCap(const EvalContext<M>& c, const typename M::Scalar& x) {
  return c.model.Mul(x, c.model.Inv(c.model.Constant(c.attrs.Real("cap"))));
}

struct EvalSoftCap {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const auto cap = c.model.Constant(c.attrs.Real("cap"));
    FillResult(c, [&](int64_t i) {
      return c.model.Mul(cap, c.model.Fn("tanh", {OverCap(c, Aligned(c, 0, i))}));
    });
  }
};

struct EvalSoftCapGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      return c.model.Mul(Aligned(c, 0, i), c.model.Fn("tanh_grad", {OverCap(c, Aligned(c, 1, i))}));
    });
  }
};

absl::Status CheckSoftCap(absl::string_view op, const OpUse& use) {
  return use.attrs.Real("cap") > 0 ? absl::OkStatus() : Refuse(op, 1, "cap must be positive");
}

OpDef SoftCap() {
  OpDef op;
  op.name = "soft_cap";
  op.doc = "cap * tanh(x / cap): x where it is small, never beyond the cap.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"cap", AttrKind::kReal}};
  op.check = [](const OpUse& use) { return CheckSoftCap("soft_cap", use); };
  op.rule = "... -> ...";
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) != kNone && c.wants(0)) {
      c.Add(0, c.Emit("soft_cap_grad", {c.output_grad(0), c.input(0)}, c.attrs()));
    }
    return absl::OkStatus();
  };
  op.flops_per_point = 10;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalSoftCap>();
  op.cases = {{"f32[2,3]", {{"cap", 0.7}}, -3.0, 3.0},
              {"f32[5,1,7]", {{"cap", 30.0}}, -90.0, 90.0}};
  return op;
}

OpDef SoftCapGrad() {
  OpDef op;
  op.name = "soft_cap_grad";
  op.doc = "dy times the derivative of soft_cap at x: 1 - tanh(x / cap)^2.";
  op.operands = {"dy", "x"};
  op.results = {"dx"};
  op.attrs = {{"cap", AttrKind::kReal}};
  op.check = [](const OpUse& use) { return CheckSoftCap("soft_cap_grad", use); };
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 12;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalSoftCapGrad>();
  op.cases = {{"f32[2,3], f32[2,3]", {{"cap", 0.7}}, -3.0, 3.0},
              {"f32[5,1,7], f32[5,1,7]", {{"cap", 30.0}}, -90.0, 90.0}};
  return op;
}

struct EvalBiasGelu {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      return c.model.Fn("gelu", {c.model.Add(Aligned(c, 0, i), Aligned(c, 1, i))});
    });
  }
};

OpDef BiasGelu() {
  OpDef op;
  op.name = "bias_gelu";
  op.doc = "gelu(x + b), b broadcast over leading dims.";
  op.operands = {"x", "b"};
  op.results = {"y"};
  op.check = [](const OpUse& use) { return CheckTrailing("bias_gelu", use); };
  op.rule_of = TrailingRule;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !(c.wants(0) || c.wants(1))) return absl::OkStatus();
    const ValueId dx = c.Emit("bias_gelu_grad", {c.output_grad(0), c.input(0), c.input(1)});
    if (c.wants(0)) c.Add(0, dx);
    if (c.wants(1)) c.Add(1, SumToTrailing(c, dx, c.type(c.input(1)).ndim()));
    return absl::OkStatus();
  };
  op.flops_per_point = 13;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalBiasGelu>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    return {c.Emit("gelu", {c.Emit("add", {c.input(0), c.input(1)})})};
  };
  // A longer operand is no bias: a residual, that others may read.
  op.replaces_expansion = [](const OpUse& use) { return use.operands[1]->ndim() == 1; };
  op.cases = {{"f32[2,3], f32[3]", {}, -3.0, 3.0}, {"f32[2,1,5], f32[5]"}, {"f32[3], f32[3]"}};
  return op;
}

struct EvalBiasGeluGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) {
      const auto sum = c.model.Add(Aligned(c, 1, i), Aligned(c, 2, i));
      return c.model.Mul(Aligned(c, 0, i), c.model.Fn("gelu_grad", {sum}));
    });
  }
};

OpDef BiasGeluGrad() {
  OpDef op;
  op.name = "bias_gelu_grad";
  op.doc = "Gradient of bias_gelu with respect to x: dy * gelu'(x + b).";
  op.operands = {"dy", "x", "b"};
  op.results = {"dx"};
  op.check = [](const OpUse& use) { return CheckTrailing("bias_gelu_grad", use); };
  op.rule_of = TrailingRule;
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 18;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalBiasGeluGrad>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    return {c.Emit("gelu_grad", {c.input(0), c.Emit("add", {c.input(1), c.input(2)})})};
  };
  op.cases = {{"f32[2,3], f32[2,3], f32[3]", {}, -3.0, 3.0}, {"f32[1], f32[1], f32[1]"}};
  return op;
}

}  // namespace

std::vector<OpDef> ActivationOps() {
  return {
      Activation<NameGelu>("GELU in its tanh form (arXiv 1606.08415).", 12),
      ActivationGrad<NameGelu>(17),
      Activation<NameGeluErf>("GELU itself: x times the normal distribution's share below x.", 20),
      ActivationGrad<NameGeluErf>(25),
      Activation<NameSilu>("x times its logistic sigmoid.", 5),
      ActivationGrad<NameSilu>(9),
      Gate<NameSilu>(6),
      GateGrad<NameSilu>(10),
      Gate<NameGelu>(13),
      GateGrad<NameGelu>(19),
      Activation<NameSoftplus>("log(1 + exp(x)): the binary cross-entropy of logit x and label 0.",
                               20),
      ActivationGrad<NameSoftplus>(6),
      SoftCap(),
      SoftCapGrad(),
      BiasGelu(),
      BiasGeluGrad()};
}

}  // namespace mgc
