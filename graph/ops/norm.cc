// LayerNorm (Ba, Kiros, Hinton, arXiv 1607.06450) and RMSNorm (Zhang, Sennrich, arXiv 1910.07467)
// over the last dim, with the row statistics that their gradients need.

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"
#include "graph/ops/row_sums.h"

namespace mgc {
namespace {

constexpr char kSecondOrder[] = "a gradient itself; second derivatives are not taken";
constexpr char kSavedStatistics[] = "saved row statistics have no gradient";

// Row r of a [rows, h] view of operand `k`.
template <class M>
struct Rows {
  explicit Rows(const EvalContext<M>& c, int k)
      : h(c.in(k).shape.back()), rows(c.in(k).size() / h) {}
  size_t At(int64_t row, int64_t i) const { return static_cast<size_t>(row * h + i); }
  int64_t h;
  int64_t rows;
};

// 1 / sqrt(mean + eps) for a sum of squares over h elements.
template <class M>
typename M::Scalar RStd(const EvalContext<M>& c, const typename M::Scalar& squares, int64_t h) {
  const auto mean = c.model.Mul(squares, c.model.Inv(c.model.Size(h)));
  return c.model.Fn("rsqrt", {c.model.Add(mean, c.model.Constant(c.attrs.Real("eps")))});
}

absl::Status CheckEps(absl::string_view op, const OpUse& use) {
  return use.attrs.Real("eps") >= 0 ? absl::OkStatus() : Refuse(op, 1, "eps must not be negative");
}

struct EvalLayerNorm {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const Rows<M> x(c, 0);
    const auto inverse_h = m.Inv(m.Size(x.h));
    for (int64_t row = 0; row < x.rows; ++row) {
      auto& mean = c.out(1).real[static_cast<size_t>(row)];
      for (int64_t i = 0; i < x.h; ++i) mean = m.Add(mean, c.in(0).real[x.At(row, i)]);
      mean = m.Mul(mean, inverse_h);
      auto squares = m.Constant(0);
      for (int64_t i = 0; i < x.h; ++i) {
        const auto centered = m.Sub(c.in(0).real[x.At(row, i)], mean);
        squares = m.Add(squares, m.Mul(centered, centered));
      }
      const auto rstd = RStd(c, squares, x.h);
      c.out(2).real[static_cast<size_t>(row)] = rstd;
      for (int64_t i = 0; i < x.h; ++i) {
        const auto hat = m.Mul(m.Sub(c.in(0).real[x.At(row, i)], mean), rstd);
        c.out(0).real[x.At(row, i)] = m.Add(m.Mul(hat, Aligned(c, 1, i)), Aligned(c, 2, i));
      }
    }
  }
};

absl::Status LayerNormDerivative(GradContext& c) {
  if (c.output_grad(1) != kNone || c.output_grad(2) != kNone) {
    return Refuse("layer_norm", 2, kSavedStatistics);
  }
  const ValueId dy = c.output_grad(0);
  if (dy == kNone) return absl::OkStatus();
  const ValueId x = c.input(0);
  const ValueId mean = c.output(1);
  const ValueId rstd = c.output(2);
  if (c.wants(0)) c.Add(0, c.Emit("layer_norm_grad", {dy, x, c.input(1), mean, rstd}));
  if (!c.wants(1) && !c.wants(2)) return absl::OkStatus();
  const std::vector<ValueId> made = c.EmitAll("layer_norm_param_grad", {dy, x, mean, rstd});
  if (c.wants(1)) c.Add(1, made[0]);
  if (c.wants(2)) c.Add(2, made[1]);
  return absl::OkStatus();
}

OpDef LayerNorm() {
  OpDef op;
  op.name = "layer_norm";
  op.doc = "LayerNorm over the last dim, with each row's mean and 1 / standard deviation.";
  op.operands = {"x", "w", "b"};
  op.results = {"y", "mean", "rstd"};
  op.attrs = {{"eps", AttrKind::kReal}};
  op.check = [](const OpUse& use) { return CheckEps("layer_norm", use); };
  op.wide_operands = {1, 2};
  op.wide_results = {1, 2};
  op.rule = "... h!, h!, h! -> ... h!, ..., ...";
  op.grad = LayerNormDerivative;
  op.saved_results = 2;
  op.flops_per_point = 8;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalLayerNorm>();
  op.cases = {{"f32[2,3,5], f32[5], f32[5]", {{"eps", 1e-5}}},
              {"f32[1,7], f32[7], f32[7]", {{"eps", 1e-5}}, -2.0, 3.0},
              {"f32[4], f32[4], f32[4]", {{"eps", 1e-2}}}};
  return op;
}

// With g = dy * w and x^ the normalized row: dx = rstd * (g - mean(g) - x^ * mean(g * x^)).
struct EvalLayerNormGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const Rows<M> x(c, 1);
    const auto inverse_h = m.Inv(m.Size(x.h));
    for (int64_t row = 0; row < x.rows; ++row) {
      const auto& mean = c.in(3).real[static_cast<size_t>(row)];
      const auto& rstd = c.in(4).real[static_cast<size_t>(row)];
      const auto hat = [&](int64_t i) {
        return m.Mul(m.Sub(c.in(1).real[x.At(row, i)], mean), rstd);
      };
      const auto g = [&](int64_t i) { return m.Mul(c.in(0).real[x.At(row, i)], Aligned(c, 2, i)); };
      auto sum_g = m.Constant(0);
      auto sum_gx = m.Constant(0);
      for (int64_t i = 0; i < x.h; ++i) {
        sum_g = m.Add(sum_g, g(i));
        sum_gx = m.Add(sum_gx, m.Mul(g(i), hat(i)));
      }
      const auto mean_g = m.Mul(sum_g, inverse_h);
      const auto mean_gx = m.Mul(sum_gx, inverse_h);
      for (int64_t i = 0; i < x.h; ++i) {
        const auto inner = m.Sub(m.Sub(g(i), mean_g), m.Mul(hat(i), mean_gx));
        c.out(0).real[x.At(row, i)] = m.Mul(rstd, inner);
      }
    }
  }
};

OpDef LayerNormGrad() {
  OpDef op;
  op.name = "layer_norm_grad";
  op.doc = "Gradient of layer_norm with respect to x.";
  op.operands = {"dy", "x", "w", "mean", "rstd"};
  op.results = {"dx"};
  op.wide_operands = {2, 3, 4};
  op.rule = "... h!, ... h!, h!, ..., ... -> ... h!";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 12;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalLayerNormGrad>();
  op.cases = {{"f32[2,3,5], f32[2,3,5], f32[5], f32[2,3], f32[2,3]"},
              {"f32[1,4], f32[1,4], f32[4], f32[1], f32[1]"}};
  return op;
}

struct EvalLayerNormParamGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const Rows<M> x(c, 1);
    for (int64_t row = 0; row < x.rows; ++row) {
      const auto& mean = c.in(2).real[static_cast<size_t>(row)];
      const auto& rstd = c.in(3).real[static_cast<size_t>(row)];
      for (int64_t i = 0; i < x.h; ++i) {
        const auto& dy = c.in(0).real[x.At(row, i)];
        const auto hat = m.Mul(m.Sub(c.in(1).real[x.At(row, i)], mean), rstd);
        auto& dw = c.out(0).real[static_cast<size_t>(i)];
        auto& db = c.out(1).real[static_cast<size_t>(i)];
        dw = m.Add(dw, m.Mul(dy, hat));
        db = m.Add(db, dy);
      }
    }
  }
};

// Of `sums` sums over the rows of x.
int64_t ParamGradGpuWorkspace(const OpUse& use, int64_t sums) {
  const TensorType& x = *use.operands[1];
  const int64_t cols = x.dims.back().size;
  return cols == 0 ? 0 : RowSumsWorkspace(x.NumElements() / cols, sums * cols);
}

OpDef LayerNormParamGrad() {
  OpDef op;
  op.name = "layer_norm_param_grad";
  op.doc = "Gradients of layer_norm with respect to w and b, summed over rows.";
  op.operands = {"dy", "x", "mean", "rstd"};
  op.results = {"dw", "db"};
  op.wide_operands = {2, 3};
  op.wide_results = {0, 1};
  op.rule = "... h, ... h, ..., ... -> h, h";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 5;
  op.gpu_workspace = [](const OpUse& use) { return ParamGradGpuWorkspace(use, 2); };
  op.eval = EvalWith<EvalLayerNormParamGrad>();
  op.cases = {{"f32[2,3,4], f32[2,3,4], f32[2,3], f32[2,3]"},
              {"f32[1,5], f32[1,5], f32[1], f32[1]"}};
  return op;
}

struct EvalRmsNorm {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const Rows<M> x(c, 0);
    for (int64_t row = 0; row < x.rows; ++row) {
      auto squares = m.Constant(0);
      for (int64_t i = 0; i < x.h; ++i) {
        const auto& value = c.in(0).real[x.At(row, i)];
        squares = m.Add(squares, m.Mul(value, value));
      }
      const auto rstd = RStd(c, squares, x.h);
      c.out(1).real[static_cast<size_t>(row)] = rstd;
      for (int64_t i = 0; i < x.h; ++i) {
        const auto hat = m.Mul(c.in(0).real[x.At(row, i)], rstd);
        c.out(0).real[x.At(row, i)] = m.Mul(hat, Aligned(c, 1, i));
      }
    }
  }
};

absl::Status RmsNormDerivative(GradContext& c) {
  if (c.output_grad(1) != kNone) return Refuse("rms_norm", 2, kSavedStatistics);
  const ValueId dy = c.output_grad(0);
  if (dy == kNone) return absl::OkStatus();
  const ValueId x = c.input(0);
  const ValueId rstd = c.output(1);
  if (c.wants(0)) c.Add(0, c.Emit("rms_norm_grad", {dy, x, c.input(1), rstd}));
  if (c.wants(1)) c.Add(1, c.Emit("rms_norm_param_grad", {dy, x, rstd}));
  return absl::OkStatus();
}

OpDef RmsNorm() {
  OpDef op;
  op.name = "rms_norm";
  op.doc = "RMSNorm over the last dim, with each row's 1 / root mean square.";
  op.operands = {"x", "w"};
  op.results = {"y", "rstd"};
  op.attrs = {{"eps", AttrKind::kReal}};
  op.check = [](const OpUse& use) { return CheckEps("rms_norm", use); };
  op.wide_operands = {1};
  op.wide_results = {1};
  op.rule = "... h!, h! -> ... h!, ...";
  op.grad = RmsNormDerivative;
  op.saved_results = 1;
  op.flops_per_point = 5;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalRmsNorm>();
  op.cases = {{"f32[2,3,5], f32[5]", {{"eps", 1e-5}}},
              {"f32[1,7], f32[7]", {{"eps", 1e-5}}, -2.0, 3.0},
              {"f32[4], f32[4]", {{"eps", 1e-2}}}};
  return op;
}

// With g = dy * w and x^ = x * rstd: dx = rstd * (g - x^ * mean(g * x^)).
struct EvalRmsNormGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const Rows<M> x(c, 1);
    for (int64_t row = 0; row < x.rows; ++row) {
      const auto& rstd = c.in(3).real[static_cast<size_t>(row)];
      const auto hat = [&](int64_t i) { return m.Mul(c.in(1).real[x.At(row, i)], rstd); };
      const auto g = [&](int64_t i) { return m.Mul(c.in(0).real[x.At(row, i)], Aligned(c, 2, i)); };
      auto sum = m.Constant(0);
      for (int64_t i = 0; i < x.h; ++i) sum = m.Add(sum, m.Mul(g(i), hat(i)));
      const auto mean = m.Mul(sum, m.Inv(m.Size(x.h)));
      for (int64_t i = 0; i < x.h; ++i) {
        c.out(0).real[x.At(row, i)] = m.Mul(rstd, m.Sub(g(i), m.Mul(hat(i), mean)));
      }
    }
  }
};

OpDef RmsNormGrad() {
  OpDef op;
  op.name = "rms_norm_grad";
  op.doc = "Gradient of rms_norm with respect to x.";
  op.operands = {"dy", "x", "w", "rstd"};
  op.results = {"dx"};
  op.wide_operands = {2, 3};
  op.rule = "... h!, ... h!, h!, ... -> ... h!";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 8;
  op.in_place = {{0, 0}, {0, 1}};
  op.eval = EvalWith<EvalRmsNormGrad>();
  op.cases = {{"f32[2,3,5], f32[2,3,5], f32[5], f32[2,3]"}, {"f32[1,4], f32[1,4], f32[4], f32[1]"}};
  return op;
}

struct EvalRmsNormParamGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const Rows<M> x(c, 1);
    for (int64_t row = 0; row < x.rows; ++row) {
      const auto& rstd = c.in(2).real[static_cast<size_t>(row)];
      for (int64_t i = 0; i < x.h; ++i) {
        const auto hat = m.Mul(c.in(1).real[x.At(row, i)], rstd);
        auto& dw = c.out(0).real[static_cast<size_t>(i)];
        dw = m.Add(dw, m.Mul(c.in(0).real[x.At(row, i)], hat));
      }
    }
  }
};

OpDef RmsNormParamGrad() {
  OpDef op;
  op.name = "rms_norm_param_grad";
  op.doc = "Gradient of rms_norm with respect to w, summed over rows.";
  op.operands = {"dy", "x", "rstd"};
  op.results = {"dw"};
  op.wide_operands = {2};
  op.wide_results = {0};
  op.rule = "... h, ... h, ... -> h";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 3;
  op.gpu_workspace = [](const OpUse& use) { return ParamGradGpuWorkspace(use, 1); };
  op.eval = EvalWith<EvalRmsNormParamGrad>();
  op.cases = {{"f32[2,3,4], f32[2,3,4], f32[2,3]"}, {"f32[1,5], f32[1,5], f32[1]"}};
  return op;
}

}  // namespace

std::vector<OpDef> NormOps() {
  return {LayerNorm(), LayerNormGrad(), LayerNormParamGrad(),
          RmsNorm(),   RmsNormGrad(),   RmsNormParamGrad()};
}

}  // namespace mgc
