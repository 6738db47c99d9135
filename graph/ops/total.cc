// Sums of everything as scalars of f64, and scalars side by side.

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// Type of a sum over everything.
absl::Status InferScalar(const OpUse&, std::vector<TensorType>* results) {
  results->push_back({DType::kF64, {}});
  return absl::OkStatus();
}

// Of a sum of everything: a partial sum in f64 for every 1024 elements, or for a block of a GPU.
int64_t SumWorkspace(const OpUse& use) {
  return (NumElements(SizesOf(*use.operands[0])) / 1024 + 1) * SizeOf(DType::kF64);
}

struct EvalTotal {
  template <class M>
  static void Run(EvalContext<M>& c) {
    for (const auto& x : c.in(0).real) c.out(0).real[0] = c.model.Add(c.out(0).real[0], x);
  }
};

OpDef Total() {
  OpDef op;
  op.name = "total";
  op.precision = Precision::kWide;
  op.doc = "Sum of all elements as a scalar of f64.";
  op.operands = {"x"};
  op.results = {"sum"};
  op.rule = "... -> ";
  op.infer = InferScalar;
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const TensorType& type = c.type(c.input(0));
    std::vector<int64_t> dims(type.dims.size());
    std::iota(dims.begin(), dims.end(), 0);
    Attrs attrs = BroadcastAttrs(type, dims);
    attrs.Set(kDTypeAttr, std::string(NameOf(type.dtype)));
    c.Add(0, c.Emit("broadcast", {c.output_grad(0)}, attrs));
    return absl::OkStatus();
  };
  op.workspace = SumWorkspace;
  op.gpu_workspace = SumWorkspace;
  op.eval = EvalWith<EvalTotal>();
  op.cases = {{"f32[2,3]"}, {"f32[1,vocab=5%2]"}, {"f64[]"}};
  return op;
}

struct EvalWeightedSum {
  template <class M>
  static void Run(EvalContext<M>& c) {
    auto& sum = c.out(0).real[0];
    for (size_t i = 0; i < c.in(0).real.size(); ++i) {
      sum = c.model.Add(sum, c.model.Mul(c.in(0).real[i], c.in(1).real[i]));
    }
  }
};

OpDef WeightedSum() {
  OpDef op;
  op.name = "weighted_sum";
  op.precision = Precision::kWide;
  op.doc = "Sum of x times w over all elements, as a scalar of f64.";
  op.operands = {"x", "w"};
  op.results = {"sum"};
  op.rule = "..., ... -> ";
  op.infer = InferScalar;
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    for (int i = 0; i < 2; ++i) {
      if (c.output_grad(0) != kNone && c.wants(i)) {
        c.Add(i, c.Emit("mul", {c.input(1 - i), c.output_grad(0)}));
      }
    }
    return absl::OkStatus();
  };
  op.flops_per_point = 2;
  op.workspace = SumWorkspace;
  op.gpu_workspace = SumWorkspace;
  op.eval = EvalWith<EvalWeightedSum>();
  op.cases = {{"f32[2,3], f32[2,3]"}, {"f32[1], f32[1]"}};
  return op;
}

struct EvalSumSquares {
  template <class M>
  static void Run(EvalContext<M>& c) {
    auto& sum = c.out(0).real[0];
    for (const auto& x : c.in(0).real) sum = c.model.Add(sum, c.model.Mul(x, x));
  }
};

OpDef SumSquares() {
  OpDef op;
  op.name = "sum_squares";
  op.precision = Precision::kWide;
  op.doc = "Sum of the squares of all elements, as a scalar of f64.";
  op.operands = {"x"};
  op.results = {"sum"};
  op.rule = "... -> ";
  op.infer = InferScalar;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    c.Add(0, Scaled(c, c.Emit("mul", {c.input(0), c.output_grad(0)}), 2));
    return absl::OkStatus();
  };
  op.flops_per_point = 2;
  op.workspace = SumWorkspace;
  op.gpu_workspace = SumWorkspace;
  op.eval = EvalWith<EvalSumSquares>();
  op.cases = {{"f32[2,3]"}, {"f32[1]"}};
  return op;
}

struct EvalStack {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return ScalarOf(c, static_cast<int>(i)); });
  }
};

OpDef Stack() {
  OpDef op;
  op.name = "stack";
  op.precision = Precision::kWide;
  op.doc = "Scalars of f64 as the elements of one vector.";
  op.operands = {"x..."};
  op.results = {"y"};
  op.roles = {OpRole::kPack};
  op.check = [](const OpUse& use) -> absl::Status {
    if (use.operands.empty()) return Refuse("stack", 1, "takes at least one operand");
    for (const TensorType* operand : use.operands) {
      if (operand->dtype == DType::kF64 && operand->dims.empty()) continue;
      return Refuse("stack", 2, absl::StrCat("stacks f64[] only, got ", operand->ToString()));
    }
    return absl::OkStatus();
  };
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    results->push_back({DType::kF64, {{static_cast<int64_t>(use.operands.size()), "", 1}}});
    return absl::OkStatus();
  };
  op.rule = " -> n!";
  op.linearity = Linearity::kJoint;
  op.grad = [](GradContext& c) {
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (c.output_grad(0) == kNone || !c.wants(i)) continue;
      const ValueId one =
          c.Emit("slice", {c.output_grad(0)},
                 {{"dim", int64_t{0}}, {"begin", int64_t{i}}, {"end", int64_t{i} + 1}});
      c.Add(i, c.Emit("total", {one}));
    }
    return absl::OkStatus();
  };
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalStack>();
  op.cases = {{"f64[], f64[], f64[]"}, {"f64[]"}};
  return op;
}

}  // namespace

std::vector<OpDef> TotalOps() { return {Total(), WeightedSum(), SumSquares(), Stack()}; }

}  // namespace mgc
