// Ops that leave their operand as it is (or drop elements of it), and constants.

#include "graph/base/random.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

OpDef StopGradient() {
  OpDef op;
  op.name = "stop_gradient";
  op.doc = "x, through which no gradient flows.";
  op.operands = {"x"};
  op.results = {"y"};
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.no_grad = "stopping the gradient is its purpose";
  op.identity = [](const Attrs&) { return true; };
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalIdentity>();
  op.cases = {{"f32[2,3]"}, {"f32[1]"}};
  return op;
}

OpDef Reshard() {
  OpDef op;
  op.name = "reshard";
  op.doc =
      "x in another sharding: a user's pin, or a change of sharding that partition will spell out.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"pin", AttrKind::kInt, false},
              {"sharding", AttrKind::kText, false},
              {"label", AttrKind::kText, false}};
  op.roles = {OpRole::kReshard};
  op.any_dtype = true;
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) != kNone && c.wants(0)) {
      c.Add(0, c.Emit("reshard", {c.output_grad(0)}, c.attrs()));
    }
    return absl::OkStatus();
  };
  op.identity = [](const Attrs& attrs) { return attrs.Int("pin") == 0; };
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalIdentity>();
  op.cases = {{"f32[2,3]", {{"pin", int64_t{1}}}}, {"f32[1]"}, {"i64[4]<9"}};
  return op;
}

absl::Status CheckCast(const OpUse& use) {
  DType dtype = DType::kI64;
  if (!ParseDType(use.attrs.Text(kDTypeAttr), &dtype) || !IsReal(dtype)) {
    return Refuse("cast", 1, "dtype must be f32, f64, bf16 or f16");
  }
  return absl::OkStatus();
}

OpDef Cast() {
  OpDef op;
  op.name = "cast";
  op.doc = "x in another element type, each element rounded to the nearest.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{kDTypeAttr, AttrKind::kText}};
  op.check = CheckCast;
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    results->push_back(*use.operands[0]);
    ParseDType(use.attrs.Text(kDTypeAttr), &results->back().dtype);
    return absl::OkStatus();
  };
  op.roles = {OpRole::kCast};
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    c.Add(0, AsTypeOf(c, c.output_grad(0), c.input(0)));
    return absl::OkStatus();
  };
  op.eval = EvalWith<EvalIdentity>();
  op.cases = {{"f32[2,3]", {{kDTypeAttr, "bf16"}}, -1.0, 1.0, 0x1p-8},
              {"f32[7]", {{kDTypeAttr, "f16"}}, -1.0, 1.0, 0x1p-11},
              {"bf16[5]", {{kDTypeAttr, "f32"}}},
              {"f16[5]", {{kDTypeAttr, "f32"}}},
              {"f64[]", {{kDTypeAttr, "f32"}}}};
  return op;
}

struct EvalConstant {
  template <class M>
  static void Run(EvalContext<M>& c) {
    c.out(0).real[0] = c.model.Constant(c.attrs.Real("value"));
  }
};

OpDef Constant() {
  OpDef op;
  op.name = "constant";
  op.precision = Precision::kWide;
  op.doc = "A real number as a scalar of f64.";
  op.results = {"x"};
  op.attrs = {{"value", AttrKind::kReal}};
  op.rule = " -> ";
  op.infer = [](const OpUse&, std::vector<TensorType>* results) {
    results->push_back({DType::kF64, {}});
    return absl::OkStatus();
  };
  op.no_grad = "depends on nothing";
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalConstant>();
  op.cases = {{"", {{"value", 2.5}}}};
  return op;
}

struct EvalAccumulate {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.Add(Aligned(c, 0, i), Aligned(c, 1, i)); });
  }
};

OpDef Accumulate() {
  OpDef op;
  op.name = "accumulate";
  op.precision = Precision::kWide;
  op.doc = "acc + x: one micro-batch's contribution joins a sum that lives on.";
  op.operands = {"acc", "x"};
  op.roles = {OpRole::kCollect};
  op.results = {"acc_next"};
  op.rule = "... -> ...";
  op.linearity = Linearity::kJoint;
  op.grad = [](GradContext& c) {
    for (int i = 0; i < 2; ++i) {
      if (c.output_grad(0) != kNone && c.wants(i)) c.Add(i, c.output_grad(0));
    }
    return absl::OkStatus();
  };
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalAccumulate>();
  op.cases = {{"f32[2,3], f32[2,3]"}, {"f64[], f64[]"}};
  return op;
}

// Elements are counted row-major over the whole tensor, modulo 2^64.
struct EvalDropout {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const TensorFactors& dims = c.rule.results[0];
    std::vector<int64_t> whole;
    for (const DimFactors& dim : dims) whole.push_back(c.rule.factors[dim[0]].size);
    const std::vector<int64_t> strides = RowMajorStrides(whole);
    uint64_t begin = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      begin += static_cast<uint64_t>(c.pieces[dims[d][0]].begin) * strides[d];
    }
    const uint64_t stream = StreamOf(c.attrs.Text("key"));
    const double keep = 1.0 - c.attrs.Real("p");
    if (keep == 1.0) {
      c.out(0).real = c.in(0).real;
      return;
    }
    size_t i = 0;
    for (Walk walk(c.out(0).shape, {strides}); !walk.done(); walk.Next(), ++i) {
      const uint64_t index = begin + static_cast<uint64_t>(walk.offset(0));
      c.out(0).real[i] = c.model.Mul(c.in(0).real[i], c.model.Random(c.seed, stream, index, keep));
    }
  }
};

OpDef Dropout() {
  OpDef op;
  op.name = "dropout";
  op.doc = "Drops elements with probability p by their logical index and scales the rest.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{kDropAttr, AttrKind::kReal}, {kRandomKeyAttr, AttrKind::kText}};
  op.roles = {OpRole::kRandom};
  op.check = [](const OpUse& use) -> absl::Status {
    const double p = use.attrs.Real("p");
    return p >= 0 && p < 1 ? absl::OkStatus() : Refuse("dropout", 1, "p must lie in [0, 1)");
  };
  op.rule = "... -> ...";
  op.linearity = Linearity::kSeparate;
  op.offset_factors = {"..."};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) != kNone && c.wants(0)) {
      c.Add(0, c.Emit("dropout", {c.output_grad(0)}, c.attrs()));
    }
    return absl::OkStatus();
  };
  op.identity = [](const Attrs& attrs) { return attrs.Real(kDropAttr) == 0; };
  op.flops_per_point = 2;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalDropout>();
  op.cases = {{"f32[4,6]", {{"p", 0.5}, {"key", "layers.0.dropout"}}},
              {"f32[2,1,8]", {{"p", 0.1}, {"key", "a"}}},
              {"f32[3]", {{"p", 0.0}, {"key", "b"}}}};
  return op;
}

}  // namespace

std::vector<OpDef> IdentityOps() {
  return {StopGradient(), Reshard(), Cast(), Constant(), Accumulate(), Dropout()};
}

}  // namespace mgc
