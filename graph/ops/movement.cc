// Ops that move elements without computing: reshape, transpose, slice, concat.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"
#include "graph/ops/reshape_rule.h"

namespace mgc {
namespace {

// --- reshape

struct EvalReshape {
  template <class M>
  static void Run(EvalContext<M>& c) {
    // Factors stand in the same order on both sides, so that tiles keep their row-major order too.
    for (int64_t i = 0; i < c.in(0).size(); ++i) CopyElement(c.in(0), i, &c.out(0), i);
  }
};

OpDef Reshape() {
  OpDef op;
  op.name = "reshape";
  op.doc =
      "The same elements in row-major order under other dims. Without `names`, dims that stay keep "
      "theirs.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"sizes", AttrKind::kInts}, {"names", AttrKind::kText, false}};
  op.resized = [](const Attrs& attrs, absl::Span<const TensorType* const> results) {
    Attrs made = attrs;
    made.Set("sizes", SizesOf(*results[0]));
    made.Set("names", JoinDimNames(results[0]->dims));
    return made;
  };
  op.any_dtype = true;
  op.check = CheckReshape;
  op.infer = InferReshape;
  op.rule_of = ReshapeRule;
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const TensorType& type = c.type(c.input(0));
    c.Add(0, c.Emit("reshape", {c.output_grad(0)},
                    {{"sizes", SizesOf(type)}, {"names", JoinDimNames(type.dims)}}));
    return absl::OkStatus();
  };
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalReshape>();
  const auto to = [](std::vector<int64_t> sizes, std::string names) {
    return Attrs{{"sizes", std::move(sizes)}, {"names", std::move(names)}};
  };
  op.cases = {{"f32[batch=2,12]", to({2, 4, 3}, "batch heads _")},
              {"f32[2,4,3]", to({2, 12}, "_ _")},
              {"f32[4,6]", to({8, 3}, "_ _")},
              {"f32[batch=2,12]", {{"sizes", std::vector<int64_t>{2, 3, 4}}}},
              {"f32[2,6,2]", to({2, 4, 3}, "_ _ _")},
              {"f32[2,1,vocab=5%2]", to({2, 5}, "_ vocab")},
              {"f32[1]", to({}, "")},
              {"i64[4]<5", to({2, 2}, "_ _")}};
  return op;
}

// --- transpose

struct EvalTranspose {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const std::vector<int64_t> from = RowMajorStrides(c.in(0).shape);
    std::vector<int64_t> strides;
    for (int64_t dim : c.attrs.Ints("perm")) strides.push_back(from[static_cast<size_t>(dim)]);
    int64_t i = 0;
    for (Walk walk(c.out(0).shape, {strides}); !walk.done(); walk.Next(), ++i) {
      CopyElement(c.in(0), walk.offset(0), &c.out(0), i);
    }
  }
};

absl::Status CheckTranspose(const OpUse& use) {
  std::vector<int64_t> sorted = use.attrs.Ints("perm");
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(use.operands[0]->dims.size());
  std::iota(all.begin(), all.end(), 0);
  if (sorted == all) return absl::OkStatus();
  return Refuse("transpose", 1,
                absl::StrCat("perm must name every dim of ", use.operands[0]->ToString(), " once"));
}

OpDef Transpose() {
  OpDef op;
  op.name = "transpose";
  op.doc = "Dim i of the result is dim perm[i] of x.";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"perm", AttrKind::kInts}};
  op.any_dtype = true;
  op.check = CheckTranspose;
  op.rule_of = [](const OpUse& use) {
    std::string to;
    for (int64_t dim : use.attrs.Ints("perm")) absl::StrAppend(&to, " d", dim);
    return absl::StrCat(DimFactorNames(0, use.operands[0]->ndim()), " -> ", to);
  };
  op.linearity = Linearity::kSeparate;
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    const std::vector<int64_t> perm = c.attrs().Ints("perm");
    std::vector<int64_t> inverse(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
      inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    c.Add(0, c.Emit("transpose", {c.output_grad(0)}, {{"perm", inverse}}));
    return absl::OkStatus();
  };
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalTranspose>();
  op.cases = {{"f32[2,3,4]", {{"perm", std::vector<int64_t>{2, 0, 1}}}},
              {"f32[1,5]", {{"perm", std::vector<int64_t>{1, 0}}}},
              {"i64[2,3]<7", {{"perm", std::vector<int64_t>{1, 0}}}}};
  return op;
}

// --- slice and concat

// Copies all of `from` along `dim` beginning at `from_begin` to `to` beginning at `to_begin`,
// `count` long.
template <class S>
void CopyRange(const HostTensor<S>& from, int64_t from_begin, HostTensor<S>* to, int64_t to_begin,
               int dim, int64_t count) {
  const std::vector<int64_t> a = RowMajorStrides(from.shape);
  const std::vector<int64_t> b = RowMajorStrides(to->shape);
  std::vector<int64_t> extents = from.shape;
  const size_t d = static_cast<size_t>(dim);
  extents[d] = count;
  for (Walk walk(extents, {a, b}); !walk.done(); walk.Next()) {
    CopyElement(from, walk.offset(0) + from_begin * a[d], to, walk.offset(1) + to_begin * b[d]);
  }
}

// `d0 d1 x<tensor>! d3`: every tensor has a factor of its own along `dim`.
std::string WithOwnFactor(int ndim, int64_t dim, absl::string_view name) {
  std::string text;
  for (int i = 0; i < ndim; ++i) {
    absl::StrAppend(&text, i == dim ? absl::StrCat(" ", name, "!") : absl::StrCat(" d", i));
  }
  return text;
}

struct EvalSlice {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const int64_t begin = c.attrs.Int(kBeginAttr);
    CopyRange(c.in(0), begin, &c.out(0), 0, static_cast<int>(c.attrs.Int(kDimAttr)),
              c.attrs.Int(kEndAttr) - begin);
  }
};

absl::Status CheckSlice(const OpUse& use) {
  const TensorType& type = *use.operands[0];
  const int64_t dim = use.attrs.Int(kDimAttr);
  if (dim < 0 || dim >= type.ndim()) {
    return Refuse("slice", 1, absl::StrCat(type.ToString(), " has no dim ", dim));
  }
  const int64_t begin = use.attrs.Int(kBeginAttr);
  const int64_t end = use.attrs.Int(kEndAttr);
  const Dim& cut = type.dims[static_cast<size_t>(dim)];
  if (begin < 0 || begin >= end || end > cut.size) {
    return Refuse(
        "slice", 2,
        absl::StrCat("[", begin, ", ", end, ") is no range of dim ", dim, " of ", type.ToString()));
  }
  if (cut.multiple != 1) return Refuse("slice", 3, "a padded dim cannot be sliced");
  return absl::OkStatus();
}

// A part that grows or shrinks begins later or earlier in the same ratio: the sliced dim has
// changed like its part.
Attrs ResizedSlice(const Attrs& attrs, absl::Span<const TensorType* const> results) {
  constexpr int64_t kLargest = int64_t{1} << 50;  // of a dim, so that products fit
  const int64_t dim = attrs.Int(kDimAttr);
  const int64_t begin = attrs.Int(kBeginAttr);
  const int64_t end = attrs.Int(kEndAttr);
  Attrs made = attrs;
  if (dim < 0 || dim >= results[0]->ndim()) return made;
  if (begin < 0 || begin >= end || end > kLargest) return made;
  const int64_t part = results[0]->dims[static_cast<size_t>(dim)].size;
  if (part > kLargest / end) return made;
  made.Set(kBeginAttr, begin * part / (end - begin));
  made.Set(kEndAttr, begin * part / (end - begin) + part);
  return made;
}

// A tensor of zeros like `like`, `size` long along `dim`.
ValueId Zeros(GradContext& c, TensorType like, int64_t dim, int64_t size) {
  like.dims[static_cast<size_t>(dim)].size = size;
  std::vector<int64_t> all(like.dims.size());
  std::iota(all.begin(), all.end(), 0);
  Attrs attrs = BroadcastAttrs(like, all);
  attrs.Set(kDTypeAttr, std::string(NameOf(like.dtype)));
  return c.Emit("broadcast", {c.Emit("constant", {}, {{"value", 0.0}})}, attrs);
}

absl::Status SliceGrad(GradContext& c) {
  if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
  const TensorType type = c.type(c.input(0));
  const int64_t dim = c.attrs().Int(kDimAttr);
  const int64_t size = type.dims[static_cast<size_t>(dim)].size;
  const int64_t begin = c.attrs().Int(kBeginAttr);
  const int64_t end = c.attrs().Int(kEndAttr);
  std::vector<ValueId> parts;
  if (begin > 0) parts.push_back(Zeros(c, type, dim, begin));
  parts.push_back(c.output_grad(0));
  if (end < size) parts.push_back(Zeros(c, type, dim, size - end));
  c.Add(0, parts.size() == 1 ? parts[0] : c.Emit("concat", parts, {{"dim", dim}}));
  return absl::OkStatus();
}

OpDef Slice() {
  OpDef op;
  op.name = "slice";
  op.doc = "Elements [begin, end) along one dim.";
  op.operands = {"x"};
  op.results = {"y"};
  op.roles = {OpRole::kRange};
  op.attrs = {{kDimAttr, AttrKind::kInt}, {kBeginAttr, AttrKind::kInt}, {kEndAttr, AttrKind::kInt}};
  op.any_dtype = true;
  op.resized = ResizedSlice;
  op.check = CheckSlice;
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    results->push_back(*use.operands[0]);
    results->back().dims[static_cast<size_t>(use.attrs.Int(kDimAttr))].size =
        use.attrs.Int(kEndAttr) - use.attrs.Int(kBeginAttr);
    return absl::OkStatus();
  };
  op.rule_of = [](const OpUse& use) {
    const int ndim = use.operands[0]->ndim();
    const int64_t dim = use.attrs.Int(kDimAttr);
    return absl::StrCat(WithOwnFactor(ndim, dim, "all"), " -> ", WithOwnFactor(ndim, dim, "part"));
  };
  op.linearity = Linearity::kSeparate;
  op.grad = SliceGrad;
  op.flops_per_point = 0;
  op.bytes = [](const OpUse& use) { return 2 * BytesOf(*use.results[0]); };
  op.eval = EvalWith<EvalSlice>();
  const auto range = [](int64_t dim, int64_t begin, int64_t end) {
    return Attrs{{kDimAttr, dim}, {kBeginAttr, begin}, {kEndAttr, end}};
  };
  op.cases = {{"f32[2,5]", range(1, 1, 3)},
              {"f32[3,1,2]", range(0, 0, 3)},
              {"f32[4]", range(0, 3, 4)},
              {"i64[2,6]<9", range(1, 0, 5)}};
  return op;
}

struct EvalConcat {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const int dim = static_cast<int>(c.attrs.Int("dim"));
    int64_t begin = 0;
    for (size_t k = 0; k < c.inputs.size(); ++k) {
      const int64_t count = c.inputs[k]->dim(dim);
      CopyRange(*c.inputs[k], 0, &c.out(0), begin, dim, count);
      begin += count;
    }
  }
};

absl::Status CheckConcat(const OpUse& use) {
  if (use.operands.empty()) return Refuse("concat", 1, "takes at least one operand");
  const int64_t dim = use.attrs.Int("dim");
  for (const TensorType* operand : use.operands) {
    if (dim < 0 || dim >= operand->ndim() || operand->ndim() != use.operands[0]->ndim()) {
      return Refuse("concat", 2,
                    absl::StrCat(operand->ToString(), " beside ", use.operands[0]->ToString(),
                                 ", dim ", dim));
    }
    if (operand->dims[static_cast<size_t>(dim)].multiple != 1) {
      return Refuse("concat", 3, "a padded dim cannot be concatenated");
    }
  }
  return absl::OkStatus();
}

absl::Status ConcatGrad(GradContext& c) {
  const int64_t dim = c.attrs().Int("dim");
  int64_t begin = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const int64_t end = begin + c.type(c.input(i)).dims[static_cast<size_t>(dim)].size;
    if (c.output_grad(0) != kNone && c.wants(i)) {
      c.Add(i, c.Emit("slice", {c.output_grad(0)}, {{"dim", dim}, {"begin", begin}, {"end", end}}));
    }
    begin = end;
  }
  return absl::OkStatus();
}

OpDef Concat() {
  OpDef op;
  op.name = "concat";
  op.doc = "Operands one after the other along one dim.";
  op.operands = {"x..."};
  op.results = {"y"};
  op.attrs = {{"dim", AttrKind::kInt}};
  op.any_dtype = true;
  op.check = CheckConcat;
  op.infer = [](const OpUse& use, std::vector<TensorType>* results) {
    const size_t dim = static_cast<size_t>(use.attrs.Int("dim"));
    results->push_back(*use.operands[0]);
    for (const TensorType* operand : use.operands.subspan(1)) {
      results->back().dims[dim].size += operand->dims[dim].size;
    }
    return absl::OkStatus();
  };
  op.rule_of = [](const OpUse& use) {
    const int ndim = use.operands[0]->ndim();
    const int64_t dim = use.attrs.Int("dim");
    std::string text;
    for (size_t k = 0; k < use.operands.size(); ++k) {
      absl::StrAppend(&text, k == 0 ? "" : ",", WithOwnFactor(ndim, dim, absl::StrCat("part", k)));
    }
    return absl::StrCat(text, " -> ", WithOwnFactor(ndim, dim, "all"));
  };
  op.linearity = Linearity::kJoint;
  op.grad = ConcatGrad;
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalConcat>();
  op.cases = {{"f32[2,3], f32[2,1], f32[2,2]", {{"dim", int64_t{1}}}},
              {"f32[2,3], f32[4,3]", {{"dim", int64_t{0}}}},
              {"i64[2]<5, i64[3]<5", {{"dim", int64_t{0}}}},
              {"f32[3]", {{"dim", int64_t{0}}}}};
  return op;
}

}  // namespace

std::vector<OpDef> MovementOps() { return {Reshape(), Transpose(), Slice(), Concat()}; }

}  // namespace mgc
