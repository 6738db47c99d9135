// The optimizers' steps for one parameter (graph/ir/optimizers.h), and what they need where the
// loss is scaled.

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

constexpr char kDecayAttr[] = "decay";
constexpr char kNoGrad[] = "part of the update, which is not differentiated";

// The rule of an elementwise op on `tensors` of one shape and on numbers.
std::string StepRule(size_t tensors, size_t operands, size_t results) {
  std::vector<std::string> sides[2] = {std::vector<std::string>(tensors, "..."),
                                       std::vector<std::string>(results, "...")};
  sides[0].resize(operands);
  return absl::StrCat(absl::StrJoin(sides[0], ", "), " -> ", absl::StrJoin(sides[1], ", "));
}

// The weight decay, 0 where none applies.
template <class M>
typename M::Scalar DecayOf(const EvalContext<M>& c, int operand) {
  return c.attrs.Int(kDecayAttr) != 0 ? ScalarOf(c, operand) : c.model.Constant(0);
}

// g, of which `a` is `share`: share a + (1 - share) g.
template <class M>
typename M::Scalar Mixed(const M& m, const typename M::Scalar& share, const typename M::Scalar& a,
                         const typename M::Scalar& g) {
  return m.Add(m.Mul(share, a), m.Mul(m.Sub(m.Constant(1), share), g));
}

// Adam and AdamW. Each of these names its operands in order, and which operands its results take
// the place of.
template <bool kDecoupled>
struct EvalAdam {
  enum {
    kParam,
    kGrad,
    kFirst,
    kSecond,
    kRate,
    kDecay,
    kBeta1,
    kBeta2,
    kEps,
    kCorrection1,
    kCorrection2,
    kClip
  };
  static constexpr InPlace kPlaces[] = {{0, kParam}, {1, kFirst}, {2, kSecond}};

  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto decay = DecayOf(c, kDecay);
    for (size_t i = 0; i < c.in(kParam).real.size(); ++i) {
      const auto& param = c.in(kParam).real[i];
      auto g = m.Mul(c.in(kGrad).real[i], ScalarOf(c, kClip));
      if (!kDecoupled) g = m.Add(g, m.Mul(decay, param));
      const auto first = Mixed(m, ScalarOf(c, kBeta1), c.in(kFirst).real[i], g);
      const auto second = Mixed(m, ScalarOf(c, kBeta2), c.in(kSecond).real[i], m.Mul(g, g));
      const auto mean = m.Mul(first, m.Inv(ScalarOf(c, kCorrection1)));
      const auto root = m.Fn("sqrt", {m.Mul(second, m.Inv(ScalarOf(c, kCorrection2)))});
      auto change = m.Mul(mean, m.Inv(m.Add(root, ScalarOf(c, kEps))));
      if (kDecoupled) change = m.Add(change, m.Mul(decay, param));
      c.out(0).real[i] = m.Sub(param, m.Mul(ScalarOf(c, kRate), change));
      c.out(1).real[i] = first;
      c.out(2).real[i] = second;
    }
  }
};

struct EvalSgd {
  enum { kParam, kGrad, kFirst, kRate, kDecay, kMomentum, kClip };
  static constexpr InPlace kPlaces[] = {{0, kParam}, {1, kFirst}};

  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto decay = DecayOf(c, kDecay);
    for (size_t i = 0; i < c.in(kParam).real.size(); ++i) {
      const auto& param = c.in(kParam).real[i];
      const auto g = m.Add(m.Mul(c.in(kGrad).real[i], ScalarOf(c, kClip)), m.Mul(decay, param));
      const auto first = m.Add(m.Mul(ScalarOf(c, kMomentum), c.in(kFirst).real[i]), g);
      c.out(0).real[i] = m.Sub(param, m.Mul(ScalarOf(c, kRate), first));
      c.out(1).real[i] = first;
    }
  }
};

struct EvalLion {
  enum { kParam, kGrad, kFirst, kRate, kDecay, kBeta1, kBeta2, kClip };
  static constexpr InPlace kPlaces[] = {{0, kParam}, {1, kFirst}};

  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto decay = DecayOf(c, kDecay);
    for (size_t i = 0; i < c.in(kParam).real.size(); ++i) {
      const auto& param = c.in(kParam).real[i];
      const auto& first = c.in(kFirst).real[i];
      const auto g = m.Mul(c.in(kGrad).real[i], ScalarOf(c, kClip));
      const auto sign = m.Fn("sign", {Mixed(m, ScalarOf(c, kBeta1), first, g)});
      const auto change = m.Add(sign, m.Mul(decay, param));
      c.out(0).real[i] = m.Sub(param, m.Mul(ScalarOf(c, kRate), change));
      c.out(1).real[i] = Mixed(m, ScalarOf(c, kBeta2), first, g);
    }
  }
};

struct EvalNesterov {
  enum { kGrad, kFirst, kMomentum, kClip };
  static constexpr InPlace kPlaces[] = {{1, kFirst}};

  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    for (size_t i = 0; i < c.in(kGrad).real.size(); ++i) {
      const auto g = m.Mul(c.in(kGrad).real[i], ScalarOf(c, kClip));
      const auto first = Mixed(m, ScalarOf(c, kMomentum), c.in(kFirst).real[i], g);
      c.out(0).real[i] = Mixed(m, ScalarOf(c, kMomentum), first, g);
      c.out(1).real[i] = first;
    }
  }
};

struct EvalDecayedStep {
  enum { kParam, kDirection, kRate, kDecay };
  static constexpr InPlace kPlaces[] = {{0, kParam}};

  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const auto decay = DecayOf(c, kDecay);
    for (size_t i = 0; i < c.in(kParam).real.size(); ++i) {
      const auto& param = c.in(kParam).real[i];
      const auto change = m.Add(c.in(kDirection).real[i], m.Mul(decay, param));
      c.out(0).real[i] = m.Sub(param, m.Mul(ScalarOf(c, kRate), change));
    }
  }
};

// The same where the last operand, `apply`, is 1; where it is 0 results are the operands whose
// place they take, and zero where they take none.
template <class Impl>
struct EvalGuarded {
  template <class M>
  static void Run(EvalContext<M>& c) {
    Impl::Run(c);
    const auto& apply = ScalarOf(c, static_cast<int>(c.inputs.size()) - 1);
    for (size_t r = 0; r < c.outputs.size(); ++r) {
      const auto* place =
          std::find_if(std::begin(Impl::kPlaces), std::end(Impl::kPlaces),
                       [r](const InPlace& pair) { return pair.result == static_cast<int>(r); });
      const bool stays = place != std::end(Impl::kPlaces);
      auto& made = c.out(static_cast<int>(r)).real;
      for (size_t i = 0; i < made.size(); ++i) {
        const auto kept = stays ? c.in(place->operand).real[i] : c.model.Constant(0);
        made[i] = c.model.Select(apply, made[i], kept);
      }
    }
  }
};

// What an op is named, and the operands that are numbers.
struct StepText {
  const char* name;
  const char* doc;
  std::vector<std::string> tensors;  // the first ones, of one type
  std::vector<std::string> numbers;
  std::vector<std::string> results;
  double flops;
};

template <class Impl>
OpDef Step(const StepText& text) {
  OpDef op;
  op.name = text.name;
  op.precision = Precision::kWide;
  op.doc = text.doc;
  op.operands = text.tensors;
  op.operands.insert(op.operands.end(), text.numbers.begin(), text.numbers.end());
  op.results = text.results;
  const auto decays = std::find(text.numbers.begin(), text.numbers.end(), kDecayAttr);
  const bool has_decay = decays != text.numbers.end();
  if (has_decay) op.attrs = {{kDecayAttr, AttrKind::kInt}};
  op.rule = StepRule(text.tensors.size(), op.operands.size(), op.results.size());
  op.no_grad = kNoGrad;
  op.flops_per_point = text.flops;
  op.in_place.assign(std::begin(Impl::kPlaces), std::end(Impl::kPlaces));
  op.eval = EvalWith<Impl>();
  for (const char* type : {"f32[2,3]", "f32[1]"}) {
    std::vector<std::string> types(text.tensors.size(), type);
    types.resize(op.operands.size(), "f64[]");
    const Attrs attrs =
        has_decay ? Attrs{{kDecayAttr, int64_t{op.cases.empty() ? 1 : 0}}} : Attrs();
    op.cases.push_back({absl::StrJoin(types, ", "), attrs, 0.1, 0.9});
  }
  return op;
}

// An op and its guarded form, by one meaning.
template <class Impl>
void AddStep(const StepText& text, std::vector<OpDef>* ops) {
  ops->push_back(Step<Impl>(text));
  OpDef guarded = ops->back();
  guarded.name = absl::StrCat("guarded_", text.name);
  guarded.doc = absl::StrCat(text.name,
                             " where `apply` is 1; where it is 0 each result is the operand whose "
                             "place it may take, or zero where it may take none.");
  guarded.operands.emplace_back("apply");
  guarded.rule = StepRule(text.tensors.size(), guarded.operands.size(), guarded.results.size());
  guarded.eval = EvalWith<EvalGuarded<Impl>>();
  for (OpCase& op_case : guarded.cases) op_case.operands += ", f64[]";
  ops->push_back(std::move(guarded));
}

void AddSteps(std::vector<OpDef>* ops) {
  const std::vector<std::string> two = {"param", "grad", "m", "v"};
  const std::vector<std::string> one = {"param", "grad", "m"};
  const std::vector<std::string> adam = {"lr",  "decay",       "beta1",       "beta2",
                                         "eps", "correction1", "correction2", "clip"};
  AddStep<EvalAdam<true>>(
      {"adamw",
       "AdamW (Loshchilov, Hutter, arXiv 1711.05101) with bias corrections 1 - beta^step as "
       "operands; `decay` says whether weight decay applies.",
       two,
       adam,
       {"param", "m", "v"},
       16},
      ops);
  AddStep<EvalAdam<false>>(
      {"adam",
       "Adam (Kingma, Ba, arXiv 1412.6980): as adamw, but weight decay joins the gradient.",
       two,
       adam,
       {"param", "m", "v"},
       16},
      ops);
  AddStep<EvalSgd>({"sgd",
                    "Gradient descent with momentum: m is sgd_momentum times itself plus the "
                    "gradient, which weight decay joins, and the parameter follows it.",
                    one,
                    {"lr", "decay", "sgd_momentum", "clip"},
                    {"param", "m"},
                    8},
                   ops);
  AddStep<EvalLion>({"lion",
                     "Lion (Chen et al., arXiv 2302.06675): the parameter follows the sign of a "
                     "mean of m and the gradient, and m is another mean of both.",
                     one,
                     {"lr", "decay", "lion_beta1", "lion_beta2", "clip"},
                     {"param", "m"},
                     14},
                    ops);
  AddStep<EvalNesterov>({"nesterov",
                         "What muon makes orthogonal: m is a mean of itself and the gradient, and "
                         "the direction one of the new m and the gradient.",
                         {"grad", "m"},
                         {"muon_momentum", "clip"},
                         {"direction", "m"},
                         8},
                        ops);
  AddStep<EvalDecayedStep>({"decayed_step",
                            "The parameter less lr times a direction, with decoupled weight decay.",
                            {"param", "direction"},
                            {"lr", "decay"},
                            {"param"},
                            4},
                           ops);
}

// The longer side of a matrix whose first `row_dims` dims count its rows.
int64_t LongerSide(const std::vector<int64_t>& shape, int64_t row_dims) {
  int64_t sides[2] = {1, 1};
  for (size_t d = 0; d < shape.size(); ++d)
    sides[static_cast<int64_t>(d) < row_dims ? 0 : 1] *= shape[d];
  return std::max(sides[0], sides[1]);
}

struct EvalSpectralScale {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    const int64_t side = LongerSide(c.in(0).shape, c.attrs.Int("row_dims"));
    const auto factor = m.Mul(m.Constant(0.2), m.Fn("sqrt", {m.Size(side)}));
    FillResult(c, [&](int64_t i) { return m.Mul(factor, Aligned(c, 0, i)); });
  }
};

OpDef SpectralScale() {
  OpDef op;
  op.name = "spectral_scale";
  op.precision = Precision::kWide;
  op.doc =
      "A whole matrix, whose first `row_dims` dims count its rows, times 0.2 sqrt(max(rows, "
      "columns)): an orthogonal one has then elements as large as a step of Adam's (Liu et al., "
      "arXiv 2502.16982).";
  op.operands = {"x"};
  op.results = {"y"};
  op.attrs = {{"row_dims", AttrKind::kInt}};
  op.check = [](const OpUse& use) -> absl::Status {
    const int64_t rows = use.attrs.Int("row_dims");
    if (rows >= 1 && rows < use.operands[0]->ndim()) return absl::OkStatus();
    return Refuse("spectral_scale", 1,
                  absl::StrCat("row_dims is ", rows, ", of ", use.operands[0]->ndim(), " dims"));
  };
  op.rule_of = [](const OpUse& use) {
    std::string tensor;
    for (int d = 0; d < use.operands[0]->ndim(); ++d) absl::StrAppend(&tensor, " d", d, "!");
    return absl::StrCat(tensor, " -> ", tensor);
  };
  op.no_grad = kNoGrad;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalSpectralScale>();
  op.cases = {{"f32[2,3]", {{"row_dims", int64_t{1}}}}, {"f32[3,2,2]", {{"row_dims", int64_t{2}}}}};
  return op;
}

}  // namespace

std::vector<OpDef> OptimizerOps() {
  std::vector<OpDef> ops = {SpectralScale()};
  AddSteps(&ops);
  return ops;
}

}  // namespace mgc
