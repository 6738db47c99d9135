// Reductions, and broadcast, their transpose.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"
#include "graph/ops/row_sums.h"

namespace mgc {
namespace {

bool Contains(const std::vector<int64_t>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// `d0 d1^ d2 -> d0 d2`, the marked dims being those reduced.
std::string ReduceRule(const OpUse& use, absl::string_view mark) {
  const std::vector<int64_t> dims = use.attrs.Ints("dims");
  std::string from;
  std::string to;
  for (int i = 0; i < use.operands[0]->ndim(); ++i) {
    const bool reduced = Contains(dims, i);
    absl::StrAppend(&from, " d", i, reduced ? mark : "");
    if (!reduced) absl::StrAppend(&to, " d", i);
  }
  return absl::StrCat(from, " -> ", to);
}

// Strides of the result seen from the operand: 0 along reduced dims.
std::vector<int64_t> KeptStrides(const std::vector<int64_t>& shape,
                                 const std::vector<int64_t>& reduced) {
  std::vector<int64_t> strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (Contains(reduced, static_cast<int>(i))) continue;
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

struct EvalReduceSum {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const auto& x = c.in(0);
    size_t i = 0;
    for (Walk walk(x.shape, {KeptStrides(x.shape, c.attrs.Ints("dims"))}); !walk.done();
         walk.Next(), ++i) {
      auto& sum = c.out(0).real[static_cast<size_t>(walk.offset(0))];
      sum = c.model.Add(sum, x.real[i]);
    }
  }
};

int64_t ReduceSumGpuWorkspace(const OpUse& use) {
  const TensorType& x = *use.operands[0];
  int64_t rows = 1;
  for (int64_t dim : use.attrs.Ints("dims")) rows *= x.dims[static_cast<size_t>(dim)].size;
  return rows == 0 ? 0 : RowSumsWorkspace(rows, x.NumElements() / rows);
}

OpDef ReduceSum() {
  OpDef op;
  op.name = "reduce_sum";
  op.doc = "Sum over the given dims.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"dims", AttrKind::kInts}, {kDTypeAttr, AttrKind::kText, false}};
  op.check = [](const OpUse& use) {
    return CheckDimList("reduce_sum", 1, use.attrs.Ints("dims"), use.operands[0]->ndim());
  };
  op.rule_of = [](const OpUse& use) { return ReduceRule(use, ""); };
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const Attrs attrs = BroadcastAttrs(c.type(c.input(0)), c.attrs().Ints("dims"));
    c.Add(0, c.Emit("broadcast", {AsTypeOf(c, c.output_grad(0), c.input(0))}, attrs));
    return absl::OkStatus();
  };
  op.gpu_workspace = ReduceSumGpuWorkspace;
  op.eval = EvalWith<EvalReduceSum>();
  op.cases = {{"f32[2,3]", {{"dims", std::vector<int64_t>{0}}}},
              {"bf16[2,3]", {{"dims", std::vector<int64_t>{0}}, {kDTypeAttr, "f32"}}},
              {"f16[2,3]", {{"dims", std::vector<int64_t>{0}}, {kDTypeAttr, "f32"}}},
              {"f32[2,1,4]", {{"dims", std::vector<int64_t>{0, 2}}}},
              {"f32[2,vocab=5%2]", {{"dims", std::vector<int64_t>{1}}}},
              {"f32[3]", {{"dims", std::vector<int64_t>{}}}}};
  return op;
}

// Padding along a reduced dim is skipped: zero would count there.
struct EvalReduceMax {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const auto& x = c.in(0);
    for (auto& most : c.out(0).real) most = c.model.NegInf();
    std::vector<int64_t> valid;
    for (const DimFactors& dim : c.rule.operands[0]) valid.push_back(c.pieces[dim[0]].valid);
    const std::vector<int64_t> kept = KeptStrides(x.shape, c.attrs.Ints("dims"));
    for (Walk walk(valid, {kept, RowMajorStrides(x.shape)}); !walk.done(); walk.Next()) {
      auto& most = c.out(0).real[static_cast<size_t>(walk.offset(0))];
      most = c.model.Max(most, x.real[static_cast<size_t>(walk.offset(1))]);
    }
  }
};

OpDef ReduceMax() {
  OpDef op;
  op.name = "reduce_max";
  op.doc = "Maximum over the given dims.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"dims", AttrKind::kInts}, {kDTypeAttr, AttrKind::kText, false}};
  op.check = [](const OpUse& use) {
    return CheckDimList("reduce_max", 1, use.attrs.Ints("dims"), use.operands[0]->ndim());
  };
  op.rule_of = [](const OpUse& use) { return ReduceRule(use, "^"); };
  op.no_grad = "serves as a shift behind stop_gradient, on which the loss does not depend";
  op.eval = EvalWith<EvalReduceMax>();
  op.cases = {{"f32[2,3]", {{"dims", std::vector<int64_t>{0}}}},
              {"bf16[2,3]", {{"dims", std::vector<int64_t>{0}}, {kDTypeAttr, "f32"}}},
              {"f16[2,3]", {{"dims", std::vector<int64_t>{1}}, {kDTypeAttr, "f32"}}},
              {"f32[2,1,vocab=5%2]", {{"dims", std::vector<int64_t>{2}}}, -3.0, -1.0}};
  return op;
}

struct EvalBroadcast {
  template <class M>
  static void Run(EvalContext<M>& c) {
    size_t i = 0;
    const std::vector<int64_t>& shape = c.out(0).shape;
    for (Walk walk(shape, {KeptStrides(shape, c.attrs.Ints("dims"))}); !walk.done();
         walk.Next(), ++i) {
      CopyElement(c.in(0), walk.offset(0), &c.out(0), static_cast<int64_t>(i));
    }
  }
};

absl::Status CheckBroadcast(const OpUse& use) {
  const std::vector<int64_t> dims = use.attrs.Ints("dims");
  const std::vector<int64_t> sizes = use.attrs.Ints("sizes");
  const std::vector<int64_t> multiples = use.attrs.Ints("multiples");
  const int ndim = use.operands[0]->ndim() + static_cast<int>(dims.size());
  MGC_RETURN_IF_ERROR(CheckDimList("broadcast", 1, dims, ndim));
  if (sizes.size() != dims.size() || SplitDimNames(use.attrs.Text("names")).size() != dims.size() ||
      (!multiples.empty() && multiples.size() != dims.size())) {
    return Refuse("broadcast", 2, "needs one size and one name for each new dim");
  }
  const auto below_one = [](int64_t x) { return x < 1; };
  if (std::any_of(sizes.begin(), sizes.end(), below_one) ||
      std::any_of(multiples.begin(), multiples.end(), below_one)) {
    return Refuse("broadcast", 3, "sizes and multiples must be at least 1");
  }
  DType dtype = DType::kI64;
  if (use.attrs.Find(kDTypeAttr) != nullptr &&
      (!ParseDType(use.attrs.Text(kDTypeAttr), &dtype) || !IsReal(dtype))) {
    return Refuse("broadcast", 4, "dtype must be f32, f64, bf16 or f16");
  }
  return absl::OkStatus();
}

absl::Status InferBroadcast(const OpUse& use, std::vector<TensorType>* results) {
  const std::vector<int64_t> dims = use.attrs.Ints("dims");
  const std::vector<int64_t> sizes = use.attrs.Ints("sizes");
  const std::vector<int64_t> multiples = use.attrs.Ints("multiples");
  const std::vector<std::string> names = SplitDimNames(use.attrs.Text("names"));
  TensorType type = *use.operands[0];
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim made{sizes[i], names[i], multiples.empty() ? 1 : multiples[i]};
    type.dims.insert(type.dims.begin() + dims[i], made);
  }
  if (use.attrs.Find(kDTypeAttr) != nullptr) ParseDType(use.attrs.Text(kDTypeAttr), &type.dtype);
  results->push_back(std::move(type));
  return absl::OkStatus();
}

Attrs ResizedBroadcast(const Attrs& attrs, absl::Span<const TensorType* const> results) {
  Attrs made = BroadcastAttrs(*results[0], attrs.Ints("dims"));
  if (attrs.Find(kDTypeAttr) != nullptr) made.Set(kDTypeAttr, attrs.Text(kDTypeAttr));
  return made;
}

std::string BroadcastRule(const OpUse& use) {
  const std::vector<int64_t> dims = use.attrs.Ints("dims");
  const int ndim = use.operands[0]->ndim() + static_cast<int>(dims.size());
  std::string from;
  for (int i = 0; i < ndim; ++i) {
    if (!Contains(dims, i)) absl::StrAppend(&from, " d", i);
  }
  return absl::StrCat(from, " -> ", DimFactorNames(0, ndim));
}

std::vector<OpCase> BroadcastCases() {
  const std::vector<int64_t> last = {1};
  const std::vector<int64_t> ends = {0, 2};
  return {{"f32[2]", {{"dims", last}, {"sizes", std::vector<int64_t>{3}}, {"names", "_"}}},
          {"f32[vocab=5%2]",
           {{"dims", ends}, {"sizes", std::vector<int64_t>{2, 1}}, {"names", "batch _"}}},
          {"f32[2]",
           {{"dims", last},
            {"sizes", std::vector<int64_t>{5}},
            {"names", "vocab"},
            {"multiples", std::vector<int64_t>{2}}}},
          {"f64[]",
           {{"dims", std::vector<int64_t>{0}},
            {"sizes", std::vector<int64_t>{4}},
            {"names", "_"},
            {kDTypeAttr, "f32"}}}};
}

OpDef Broadcast() {
  OpDef op;
  op.name = "broadcast";
  op.doc = "x repeated along new dims, which stand at positions `dims` of the result.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"dims", AttrKind::kInts},
              {"sizes", AttrKind::kInts},
              {"names", AttrKind::kText},
              {"multiples", AttrKind::kInts, false},
              {kDTypeAttr, AttrKind::kText, false}};
  op.resized = ResizedBroadcast;
  op.check = CheckBroadcast;
  op.infer = InferBroadcast;
  op.rule_of = BroadcastRule;
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const std::vector<int64_t> dims = c.attrs().Ints("dims");
    const bool converts = c.type(c.input(0)).dtype != c.type(c.output(0)).dtype;
    if (!converts) {
      c.Add(0, c.Emit("reduce_sum", {c.output_grad(0)}, {{"dims", dims}}));
    } else if (c.type(c.input(0)).dims.empty()) {
      c.Add(0, c.Emit("total", {c.output_grad(0)}));
    } else {
      return Refuse("broadcast", 5, "only a scalar may change its element type under a gradient");
    }
    return absl::OkStatus();
  };
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalBroadcast>();
  op.cases = BroadcastCases();
  return op;
}

}  // namespace

std::vector<OpDef> ReduceOps() { return {ReduceSum(), ReduceMax(), Broadcast()}; }

}  // namespace mgc
