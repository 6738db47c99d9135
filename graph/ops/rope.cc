// Rotary position embedding.

#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"
#include "graph/ops/rope_frequencies.h"

namespace mgc {
namespace {

// What decides the frequencies beside the size of a head.
std::vector<double> FrequencyAttrs(const Attrs& attrs) {
  std::vector<double> values;
  for (const char* name : {"theta", "factor", "low", "high", "original"}) {
    if (attrs.Find(name) != nullptr) values.push_back(attrs.Real(name));
  }
  if (attrs.Find("dims") != nullptr) values.push_back(static_cast<double>(attrs.Int("dims")));
  return values;
}

// Element i of the first half of what is rotated and element i of the second turn by position *
// frequency i; the others stay.
struct EvalRope {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto& x = c.in(0);
    const int64_t seq = x.dim(1);
    const int64_t heads = x.dim(2);
    const int64_t depth = x.dim(3);
    const int64_t half = RotatedDims(c.attrs, depth) / 2;
    const bool inverse = c.attrs.Int("inverse") != 0;
    const std::vector<double> attrs = FrequencyAttrs(c.attrs);
    const std::vector<double> frequencies = RopeFrequencies(c.attrs, depth);
    c.out(0).real = x.real;
    for (int64_t row = 0; row < x.dim(0) * seq * heads; ++row) {
      const int64_t position = c.in(1).index[static_cast<size_t>(row / heads % seq)];
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * frequencies[static_cast<size_t>(i)];
        const auto cos = m.Indexed("cos", attrs, {position, i}, [=] { return std::cos(angle); });
        const auto sin = m.Indexed("sin", attrs, {position, i}, [=] { return std::sin(angle); });
        const size_t a = static_cast<size_t>(row * depth + i);
        const size_t b = a + static_cast<size_t>(half);
        const auto of_a = m.Mul(x.real[b], sin);
        const auto of_b = m.Mul(x.real[a], sin);
        const auto along_a = m.Mul(x.real[a], cos);
        const auto along_b = m.Mul(x.real[b], cos);
        c.out(0).real[a] = inverse ? m.Add(along_a, of_a) : m.Sub(along_a, of_a);
        c.out(0).real[b] = inverse ? m.Sub(along_b, of_b) : m.Add(along_b, of_b);
      }
    }
  }
};

absl::Status CheckRope(const OpUse& use) {
  const TensorType& x = *use.operands[0];
  if (x.ndim() == 4 && x.dims[3].size % 2 != 0) {
    return Refuse("rope", 1,
                  absl::StrCat("rotates pairs, but a head has ", x.dims[3].size, " elements"));
  }
  if (use.attrs.Find("dims") != nullptr) {
    const int64_t dims = use.attrs.Int("dims");
    if (dims < 2 || dims % 2 != 0) {
      return Refuse("rope", 6, absl::StrCat("rotates pairs, not ", dims, " elements"));
    }
  }
  if (use.attrs.Real("theta") <= 0) return Refuse("rope", 2, "theta must be positive");
  int given = 0;
  for (const char* name : {"factor", "low", "high", "original"}) {
    if (use.attrs.Find(name) == nullptr) continue;
    ++given;
    if (use.attrs.Real(name) <= 0)
      return Refuse("rope", 3, absl::StrCat(name, " must be positive"));
  }
  if (given != 0 && given != 4) {
    return Refuse("rope", 4, "factor, low, high and original are given together or not at all");
  }
  if (given == 4 && use.attrs.Real("low") >= use.attrs.Real("high")) {
    return Refuse("rope", 5, "low must be below high");
  }
  return absl::OkStatus();
}

OpDef Rope() {
  OpDef op;
  op.name = "rope";
  op.doc =
      "Rotary position embedding in rotate-half form, or its inverse; of the first `dims` elements "
      "of "
      "a head (all, if it has fewer), where they are given.";
  op.operands = {"x", "pos"};
  op.results = {"y"};
  op.attrs = {{"theta", AttrKind::kReal},         {"inverse", AttrKind::kInt, false},
              {"factor", AttrKind::kReal, false}, {"low", AttrKind::kReal, false},
              {"high", AttrKind::kReal, false},   {"original", AttrKind::kReal, false},
              {"dims", AttrKind::kInt, false}};
  op.index_operands = {1};
  op.check = CheckRope;
  op.rule = "b s h d!, s -> b s h d!";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    Attrs attrs = c.attrs();
    attrs.Set("inverse", int64_t{1} - attrs.Int("inverse"));
    c.Add(0, c.Emit("rope", {c.output_grad(0), c.input(1)}, attrs));
    return absl::OkStatus();
  };
  op.flops_per_point = 3;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalRope>();
  op.cases = {
      {"f32[2,4,2,4], i64[4]<50", {{"theta", 10000.0}}},
      {"f32[1,3,1,2], i64[3]<9", {{"theta", 100.0}, {"inverse", int64_t{1}}}},
      {"f32[2,3,2,6], i64[3]<9", {{"theta", 100.0}, {"dims", int64_t{4}}}},
      {"f32[2,2,1,8], i64[2]<90",
       {{"theta", 500.0}, {"factor", 8.0}, {"low", 1.0}, {"high", 4.0}, {"original", 64.0}}}};
  return op;
}

}  // namespace

std::vector<OpDef> RopeOps() { return {Rope()}; }

}  // namespace mgc
