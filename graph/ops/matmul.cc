// Matrix products, said as einsums of two operands.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/ops/add_product.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// `b s e, e h d -> b s h d`: the texts of both operands and of the result.
struct EinsumSpec {
  std::string a;
  std::string b;
  std::string c;
};

bool SplitSpec(const std::string& text, EinsumSpec* spec) {
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) return false;
  const std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
  if (operands.size() != 2) return false;
  *spec = {operands[0], operands[1], sides[1]};
  for (std::string* side : {&spec->a, &spec->b, &spec->c}) absl::StripAsciiWhitespace(side);
  return true;
}

std::string JoinSpec(absl::string_view a, absl::string_view b, absl::string_view c) {
  return absl::StrCat(a, ", ", b, " -> ", c);
}

// The spec of a node, which has passed CheckSpec.
EinsumSpec SpecOf(const Attrs& attrs) {
  EinsumSpec spec;
  MGC_CHECK(SplitSpec(attrs.Text("spec"), &spec));
  return spec;
}

std::vector<std::string> Factors(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

// Two factors in the place of one in every tensor that has it; the new, major one comes first.
Attrs WithMajor(const Attrs& attrs, absl::string_view factor) {
  const std::string text = attrs.Text("spec");
  std::string major = absl::StrCat(factor, "_runs");
  while (absl::StrContains(text, major)) absl::StrAppend(&major, "_");
  const auto split = [&](const std::string& tensor) {
    std::vector<std::string> factors;
    for (const std::string& name : Factors(tensor)) {
      if (name == factor) factors.push_back(major);
      factors.push_back(name);
    }
    return absl::StrJoin(factors, " ");
  };
  const EinsumSpec spec = SpecOf(attrs);
  Attrs made = attrs;
  made.Set("spec", JoinSpec(split(spec.a), split(spec.b), split(spec.c)));
  return made;
}

absl::Status CheckSpec(absl::string_view op, const OpUse& use) {
  const std::string text = use.attrs.Text("spec");
  EinsumSpec spec;
  if (!SplitSpec(text, &spec)) {
    return Refuse(op, 1, absl::StrCat("spec must be `A, B -> C`, got `", text, "`"));
  }
  const std::vector<std::string> tensors[] = {Factors(spec.a), Factors(spec.b), Factors(spec.c)};
  for (const std::vector<std::string>& tensor : tensors) {
    for (const std::string& factor : tensor) {
      if (!std::all_of(factor.begin(), factor.end(),
                       [](char ch) { return absl::ascii_isalnum(ch) || ch == '_'; })) {
        return Refuse(op, 2, absl::StrCat("`", factor, "` in spec `", text, "` is no factor name"));
      }
      if (std::count(tensor.begin(), tensor.end(), factor) > 1) {
        return Refuse(op, 3,
                      absl::StrCat("factor ", factor, " occurs twice in a tensor of `", text, "`"));
      }
      int places = 0;
      for (const std::vector<std::string>& other : tensors) {
        places += static_cast<int>(std::count(other.begin(), other.end(), factor));
      }
      if (places < 2) {
        return Refuse(op, 4,
                      absl::StrCat("factor ", factor, " of `", text, "` is in one tensor only"));
      }
    }
  }
  return absl::OkStatus();
}

// Product of the sizes of those factors of `tensor` that `other` has (or lacks) and `third` lacks,
// as far as it counts below.
int64_t SizeOfFactors(const std::vector<std::string>& tensor, const TensorType& tile,
                      const std::vector<std::string>& other, bool shared,
                      const std::vector<std::string>& third) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const auto has = [](const std::vector<std::string>& list, const std::string& factor) {
    return std::find(list.begin(), list.end(), factor) != list.end();
  };
  int64_t product = 1;
  for (size_t d = 0; d < tensor.size() && d < tile.dims.size(); ++d) {
    if (has(other, tensor[d]) != shared || has(third, tensor[d])) continue;
    product = std::min(product * std::min(tile.dims[d].size, kMost), kMost);
  }
  return product;
}

// What a kernel of a product may pack for each thread: a long panel of one operand and a short one
// of the other, both of limited depth. It is a budget that all backends have in common. Each
// chooses its blocks within it; plans state it, so it is no tuning knob.
struct PanelBudget {
  static constexpr int64_t kDepth = 512;
  static constexpr int64_t kLong = 3072;
  static constexpr int64_t kShort = 512;
  static constexpr int64_t kEnds = 128;  // for rounding the ends of both up
  // Elements of a result that is narrower than its sums, while these are not complete.
  static constexpr int64_t kSums = int64_t{1024} * 1536;
};

// What a GPU's library of products may ask for: as much as it recommends for the largest GPUs.
int64_t GpuProductWorkspace(const OpUse& /*use*/) { return int64_t{32} << 20; }

// Of a product of operands `first` and the next one. Either may give the long panel.
int64_t ProductWorkspace(const OpUse& use, size_t first) {
  const EinsumSpec spec = SpecOf(use.attrs);
  const auto a = Factors(spec.a), b = Factors(spec.b), c = Factors(spec.c);
  const TensorType& tile_a = *use.operands[first];
  const TensorType& tile_b = *use.operands[first + 1];
  const int64_t rows = SizeOfFactors(a, tile_a, b, false, {});
  const int64_t cols = SizeOfFactors(b, tile_b, a, false, {});
  const int64_t depth = SizeOfFactors(a, tile_a, b, true, c);
  const int64_t longer = std::max(rows, cols);
  const int64_t width = std::min<int64_t>(longer, PanelBudget::kLong) +
                        std::min<int64_t>(longer, PanelBudget::kShort) + PanelBudget::kEnds;
  const int64_t panels =
      std::min<int64_t>(depth, PanelBudget::kDepth) * width * SizeOf(WideOf(tile_a.dtype));
  const DType made = use.results[0]->dtype;
  if (made == WideOf(made) || depth <= PanelBudget::kDepth) return panels;
  return panels + std::min<int64_t>(rows * cols, PanelBudget::kSums) * SizeOf(WideOf(made));
}

struct EvalMatmul {
  template <class M>
  static void Run(EvalContext<M>& c) {
    AddProduct(c, 0, 1);
  }
};

absl::Status MatmulGrad(GradContext& c) {
  if (c.output_grad(0) == kNone) return absl::OkStatus();
  const ValueId dc = AsTypeOf(c, c.output_grad(0), c.input(0));
  const EinsumSpec spec = SpecOf(c.attrs());
  if (c.wants(0)) {
    c.Add(0, c.Emit("matmul", {dc, c.input(1)}, {{"spec", JoinSpec(spec.c, spec.b, spec.a)}}));
  }
  if (c.wants(1)) {
    c.Add(1, c.Emit("matmul", {c.input(0), dc}, {{"spec", JoinSpec(spec.a, spec.c, spec.b)}}));
  }
  return absl::OkStatus();
}

OpDef Matmul() {
  OpDef op;
  op.name = "matmul";
  op.precision = Precision::kNarrow;
  op.doc =
      "Product of two tensors summed over shared factors; every factor is in two or all three.";
  op.operands = {"a", "b"};
  op.results = {"c"};
  op.attrs = {{"spec", AttrKind::kText}, {kDTypeAttr, AttrKind::kText, false}};
  op.with_major = WithMajor;
  op.check = [](const OpUse& use) { return CheckSpec("matmul", use); };
  op.rule_of = [](const OpUse& use) { return use.attrs.Text("spec"); };
  op.linearity = Linearity::kSeparate;
  op.grad = MatmulGrad;
  op.flops_per_point = 2;
  op.workspace = [](const OpUse& use) { return ProductWorkspace(use, 0); };
  op.gpu_workspace = GpuProductWorkspace;
  op.eval = EvalWith<EvalMatmul>();
  op.cases = {{"f32[2,3], f32[3,4]", {{"spec", "m k, k n -> m n"}}},
              {"f32[2,1,4], f32[4,3,2]", {{"spec", "b s e, e h d -> b s h d"}}},
              {"f32[2,3,4,2], f32[4,2,5]", {{"spec", "b s h d, h d e -> b s e"}}},
              {"f32[2,3,4], f32[vocab=5%2,4]", {{"spec", "b s e, v e -> b s v"}}},
              {"f32[2,3,vocab=5%2], f32[vocab=5%2,4]", {{"spec", "b s v, v e -> b s e"}}},
              {"f32[4,2,3], f32[4,3,2]", {{"spec", "b m k, b k n -> b m n"}}},
              {"f32[1], f32[1]", {{"spec", "k, k -> "}}},
              {"bf16[2,3], bf16[3,4]", {{"spec", "m k, k n -> m n"}, {kDTypeAttr, "f32"}}},
              {"f16[2,3], f16[3,4]", {{"spec", "m k, k n -> m n"}, {kDTypeAttr, "f32"}}}};
  return op;
}

struct EvalMatmulAccumulate {
  template <class M>
  static void Run(EvalContext<M>& c) {
    c.out(0).real = c.in(0).real;
    AddProduct(c, 1, 2);
  }
};

absl::Status CheckMatmulAccumulate(const OpUse& use) {
  MGC_RETURN_IF_ERROR(CheckSpec("matmul_accumulate", use));
  const absl::string_view sum = NameOf(use.operands[0]->dtype);
  const bool is_said = use.attrs.Find(kDTypeAttr) != nullptr && use.attrs.Text(kDTypeAttr) == sum;
  if (use.operands[0]->dtype == use.operands[1]->dtype || is_said) return absl::OkStatus();
  return Refuse("matmul_accumulate", 5,
                absl::StrCat("a product of ", NameOf(use.operands[1]->dtype), " is added to ", sum,
                             " unrounded: dtype must be ", sum));
}

OpDef MatmulAccumulate() {
  OpDef op;
  op.name = "matmul_accumulate";
  op.precision = Precision::kNarrow;
  op.doc =
      "acc plus the product of a and b, which is not rounded: where a and b are narrower than acc, "
      "its `dtype` says so.";
  op.operands = {"acc", "a", "b"};
  op.results = {"acc_next"};
  op.attrs = {{"spec", AttrKind::kText}, {kDTypeAttr, AttrKind::kText, false}};
  op.wide_operands = {0};
  op.wide_results = {0};
  op.check = CheckMatmulAccumulate;
  op.rule_of = [](const OpUse& use) {
    const EinsumSpec spec = SpecOf(use.attrs);
    return absl::StrCat(spec.c, ", ", use.attrs.Text("spec"));
  };
  op.linearity = Linearity::kJoint;
  op.linear_operands = {0, 1};
  op.linear_terms = {{0}, {1, 2}};
  op.no_grad = "made by fusing, after differentiation";
  op.flops_per_point = 2;
  op.workspace = [](const OpUse& use) { return ProductWorkspace(use, 1); };
  op.gpu_workspace = GpuProductWorkspace;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalMatmulAccumulate>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    const ValueId product = c.Emit("matmul", {c.input(1), c.input(2)}, c.attrs());
    return {c.Emit("accumulate", {c.input(0), product})};
  };
  op.replaces_expansion = [](const OpUse&) { return true; };
  op.cases = {{"f32[3,4], f32[2,3], f32[2,4]", {{"spec", "b m, b n -> m n"}, {kDTypeAttr, "f32"}}},
              {"f32[4,2,2], f32[2,3,4], f32[2,3,2,2]",
               {{"spec", "b s e, b s h d -> e h d"}, {kDTypeAttr, "f32"}}}};
  return op;
}

// The last factors of the result, as many as operand 2 has dims: a bias, or scales.
std::vector<std::string> BiasFactors(const OpUse& use) {
  const std::vector<std::string> c = Factors(SpecOf(use.attrs).c);
  return {c.end() - use.operands[2]->ndim(), c.end()};
}

absl::Status CheckMatmulBias(const OpUse& use) {
  MGC_RETURN_IF_ERROR(CheckSpec("matmul_bias", use));
  const size_t dims = Factors(SpecOf(use.attrs).c).size();
  const size_t of_bias = static_cast<size_t>(use.operands[2]->ndim());
  if (of_bias <= dims) return absl::OkStatus();
  return Refuse("matmul_bias", 5,
                absl::StrCat("a bias of ", of_bias, " dims is added to a product of ", dims));
}

struct EvalMatmulBias {
  template <class M>
  static void Run(EvalContext<M>& c) {
    AddProduct(c, 0, 1);
    auto& sums = c.out(0).real;
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] = c.model.Add(sums[i], Aligned(c, 2, static_cast<int64_t>(i)));
    }
  }
};

// A bias that belongs to columns: operand b alone has its factors. Anything else that is added, a
// residual, others may read.
bool IsBiasOfColumns(const OpUse& use) {
  const EinsumSpec spec = SpecOf(use.attrs);
  const std::vector<std::string> a = Factors(spec.a), added = BiasFactors(use);
  return !added.empty() && std::none_of(added.begin(), added.end(), [&](const std::string& f) {
    return std::find(a.begin(), a.end(), f) != a.end();
  });
}

OpDef MatmulBias() {
  OpDef op;
  op.name = "matmul_bias";
  op.precision = Precision::kNarrow;
  op.doc = "Product of a and b plus a bias over the last dims, rounded once.";
  op.operands = {"a", "b", "bias"};
  op.results = {"c"};
  op.attrs = {{"spec", AttrKind::kText}};
  op.with_major = WithMajor;
  op.check = CheckMatmulBias;
  op.rule_of = [](const OpUse& use) {
    const EinsumSpec spec = SpecOf(use.attrs);
    return absl::StrCat(spec.a, ", ", spec.b, ", ", absl::StrJoin(BiasFactors(use), " "), " -> ",
                        spec.c);
  };
  op.linearity = Linearity::kJoint;
  op.linear_operands = {0, 2};
  op.linear_terms = {{0, 1}, {2}};
  op.no_grad = "made by fusing, after differentiation";
  op.flops_per_point = 2;
  op.workspace = [](const OpUse& use) {
    const int64_t bias = NumElements(SizesOf(*use.operands[2]));
    return ProductWorkspace(use, 0) + bias * SizeOf(WideOf(use.operands[2]->dtype));
  };
  op.gpu_workspace = GpuProductWorkspace;
  op.eval = EvalWith<EvalMatmulBias>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    return {c.Emit("add", {c.Emit("matmul", {c.input(0), c.input(1)}, c.attrs()), c.input(2)})};
  };
  op.replaces_expansion = IsBiasOfColumns;
  op.cases = {{"f32[2,3], f32[3,4], f32[4]", {{"spec", "m k, k n -> m n"}}},
              {"f32[2,1,4], f32[4,3,2], f32[3,2]", {{"spec", "b s e, e h d -> b s h d"}}},
              {"f32[2,3], f32[2,3,5], f32[2,5]", {{"spec", "m k, h k d -> m h d"}}},
              {"f32[2,3], f32[3,4], f32[2,4]", {{"spec", "m k, k n -> m n"}}}};
  return op;
}

// Scales are along all dims that b alone has, which are the last of the result.
absl::Status CheckScaledMatmul(const OpUse& use) {
  MGC_RETURN_IF_ERROR(CheckSpec("scaled_matmul", use));
  const EinsumSpec spec = SpecOf(use.attrs);
  const std::vector<std::string> a = Factors(spec.a), c = Factors(spec.c);
  const auto is_of_columns = [&a](const std::string& factor) {
    return std::find(a.begin(), a.end(), factor) == a.end();
  };
  const auto columns = std::count_if(c.begin(), c.end(), is_of_columns);
  const bool are_last = std::all_of(c.end() - columns, c.end(), is_of_columns);
  if (use.operands[2]->ndim() == columns && are_last) return absl::OkStatus();
  return Refuse("scaled_matmul", 5,
                absl::StrCat("scales of ", use.operands[2]->ndim(),
                             " dims; there is one for each "
                             "element of all dims that b alone has, the last of the result, in `",
                             use.attrs.Text("spec"), "`"));
}

struct EvalScaledMatmul {
  template <class M>
  static void Run(EvalContext<M>& c) {
    AddProduct(c, 0, 1);
    auto& sums = c.out(0).real;
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] = c.model.Mul(sums[i], Aligned(c, 2, static_cast<int64_t>(i)));
    }
  }
};

OpDef ScaledMatmul() {
  OpDef op;
  op.name = "scaled_matmul";
  op.precision = Precision::kNarrow;
  op.doc =
      "Product of a and whole numbers b, times a scale for each of the last dims' elements, "
      "rounded "
      "once.";
  op.operands = {"a", "b", "scale"};
  op.results = {"c"};
  op.attrs = {{"spec", AttrKind::kText}, {kDTypeAttr, AttrKind::kText, false}};
  op.quantized_operands = {1};
  op.wide_operands = {2};
  op.check = CheckScaledMatmul;
  op.rule_of = [](const OpUse& use) {
    const EinsumSpec spec = SpecOf(use.attrs);
    return absl::StrCat(spec.a, ", ", spec.b, ", ", absl::StrJoin(BiasFactors(use), " "), " -> ",
                        spec.c);
  };
  op.linearity = Linearity::kSeparate;
  op.no_grad = "quantized weights are those of models that nothing trains";
  op.flops_per_point = 2;
  op.workspace = [](const OpUse& use) { return ProductWorkspace(use, 0); };
  op.gpu_workspace = GpuProductWorkspace;
  op.eval = EvalWith<EvalScaledMatmul>();
  op.cases = {{"f32[2,3], i8[3,4], f32[4]", {{"spec", "m k, k n -> m n"}}},
              {"f32[2,1,4], i8[4,3,2], f32[3,2]", {{"spec", "b s e, e h d -> b s h d"}}},
              {"f32[2,3,4,2], i8[4,2,5], f32[5]", {{"spec", "b s h d, h d e -> b s e"}}},
              {"f32[2,4], i8[vocab=5%2,4], f32[vocab=5%2]", {{"spec", "b e, v e -> b v"}}},
              {"bf16[2,3], i8[3,4], f32[4]", {{"spec", "m k, k n -> m n"}, {kDTypeAttr, "f32"}}}};
  return op;
}

}  // namespace

std::vector<OpDef> MatmulOps() {
  return {Matmul(), MatmulAccumulate(), MatmulBias(), ScaledMatmul()};
}

}  // namespace mgc
