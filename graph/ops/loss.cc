// The pieces of a cross-entropy over a vocabulary that may be split:
//   m = stop_gradient(reduce_max(l)), z = exp_sum(l, m), lse = log_shift(z, m), p = pick(l, t),
// and the loss of a row is lse - p. Only reduce_max, exp_sum and pick see the vocabulary; split,
// they leave a maximum and two sums of one number a row owed, never the logits. Smoothed targets
// add a multiple of reduce_sum(l); ignored ones have weight counted(t).

#include "graph/ops/op_families.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

constexpr char kSecondOrder[] = "a gradient itself; second derivatives are not taken";

// One row of logits after the other: calls fn(row, column, index) for every valid column.
template <class M, class F>
void ForEachLogit(const EvalContext<M>& c, F fn) {
  const int64_t room = c.in(0).shape.back();
  const int64_t valid = c.piece("v").valid;
  for (int64_t row = 0; row < c.in(0).size() / room; ++row) {
    for (int64_t v = 0; v < valid; ++v) {
      fn(static_cast<size_t>(row), v, static_cast<size_t>(row * room + v));
    }
  }
}

// Place of a row's target in the local piece of the vocabulary, or -1.
template <class M>
int64_t LocalTarget(const EvalContext<M>& c, int64_t target) {
  const DimPiece& v = c.piece("v");
  const int64_t local = target - v.begin;
  return local >= 0 && local < v.valid ? local : -1;
}

struct EvalExpSum {
  template <class M>
  static void Run(EvalContext<M>& c) {
    ForEachLogit(c, [&](size_t row, int64_t, size_t i) {
      auto& sum = c.out(0).real[row];
      sum = c.model.Add(sum, c.model.ExpDiff(c.in(0).real[i], c.in(1).real[row]));
    });
  }
};

OpDef ExpSum() {
  OpDef op;
  op.name = "exp_sum";
  op.doc = "Sum over the vocabulary of exp(l - m); m is a shift behind stop_gradient.";
  op.operands = {"l", "m"};
  op.results = {"z"};
  op.wide_operands = {1};
  op.wide_results = {0};
  op.rule = "... v, ... -> ...";
  op.stopped_operands = {1};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    c.Add(0, c.Emit("exp_sum_grad", {c.input(0), c.input(1), c.output_grad(0)}));
    return absl::OkStatus();
  };
  op.flops_per_point = 6;
  op.eval = EvalWith<EvalExpSum>();
  op.cases = {{"f32[2,3,vocab=5%2], f32[2,3]", {}, -3.0, 3.0}, {"f32[1,4], f32[1]"}};
  return op;
}

struct EvalExpSumGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    ForEachLogit(c, [&](size_t row, int64_t, size_t i) {
      c.out(0).real[i] =
          c.model.Mul(c.model.ExpDiff(c.in(0).real[i], c.in(1).real[row]), c.in(2).real[row]);
    });
  }
};

OpDef ExpSumGrad() {
  OpDef op;
  op.name = "exp_sum_grad";
  op.doc = "Gradient of exp_sum with respect to l: exp(l - m) * dz.";
  op.operands = {"l", "m", "dz"};
  op.results = {"dl"};
  op.wide_operands = {1, 2};
  op.rule = "... v, ..., ... -> ... v";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {2};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 6;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalExpSumGrad>();
  op.cases = {{"f32[2,3,vocab=5%2], f32[2,3], f32[2,3]", {}, -3.0, 3.0},
              {"f32[1,4], f32[1], f32[1]"}};
  return op;
}

struct EvalLogShift {
  template <class M>
  static void Run(EvalContext<M>& c) {
    FillResult(c, [&](int64_t i) { return c.model.LogShift(Aligned(c, 0, i), Aligned(c, 1, i)); });
  }
};

OpDef LogShift() {
  OpDef op;
  op.name = "log_shift";
  op.precision = Precision::kWide;
  op.doc =
      "m + log(z), the logarithm of a sum of exponentials whose shift m is behind stop_gradient.";
  op.operands = {"z", "m"};
  op.results = {"lse"};
  op.rule = "... -> ...";
  op.stopped_operands = {1};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    c.Add(0, c.Emit("mul", {c.output_grad(0), c.Emit("inv", {c.input(0)})}));
    return absl::OkStatus();
  };
  op.flops_per_point = 5;
  op.eval = EvalWith<EvalLogShift>();
  op.cases = {{"f32[2,3], f32[2,3]", {}, 0.5, 4.0}, {"f32[1], f32[1]", {}, 1.0, 2.0}};
  return op;
}

struct EvalPick {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const size_t room = static_cast<size_t>(c.in(0).shape.back());
    for (size_t row = 0; row < c.in(1).index.size(); ++row) {
      const int64_t v = LocalTarget(c, c.in(1).index[row]);
      if (v >= 0) c.out(0).real[row] = c.in(0).real[row * room + static_cast<size_t>(v)];
    }
  }
};

OpDef Pick() {
  OpDef op;
  op.name = "pick";
  op.doc = "Element t of every row of l; zero when t is outside the local piece of the vocabulary.";
  op.operands = {"l", "t"};
  op.results = {"p"};
  op.index_operands = {1};
  op.wide_results = {0};
  op.rule = "... v, ... -> ...";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {0};
  op.offset_factors = {"v"};
  op.grad = [](GradContext& c) {
    if (c.output_grad(0) == kNone || !c.wants(0)) return absl::OkStatus();
    c.Add(0, c.Emit("pick_grad", {c.input(0), c.input(1), c.output_grad(0)}));
    return absl::OkStatus();
  };
  op.flops_per_point = 0;
  op.bytes = [](const OpUse& use) {
    return BytesOf(*use.operands[1]) + 2 * BytesOf(*use.results[0]);
  };
  op.eval = EvalWith<EvalPick>();
  op.cases = {{"f32[2,3,vocab=5%2], i64[2,3]<5"}, {"f32[1,4], i64[1]<4"}};
  return op;
}

struct EvalPickGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const size_t room = static_cast<size_t>(c.out(0).shape.back());
    for (size_t row = 0; row < c.in(1).index.size(); ++row) {
      const int64_t v = LocalTarget(c, c.in(1).index[row]);
      if (v >= 0) c.out(0).real[row * room + static_cast<size_t>(v)] = c.in(2).real[row];
    }
  }
};

OpDef PickGrad() {
  OpDef op;
  op.name = "pick_grad";
  op.doc = "Gradient of pick: dp at element t of every row, else zero. Of l only the type counts.";
  op.operands = {"l", "t", "dp"};
  op.results = {"dl"};
  op.index_operands = {1};
  op.type_operands = {0};
  op.wide_operands = {2};
  op.rule = "... v, ..., ... -> ... v";
  op.linearity = Linearity::kSeparate;
  op.linear_operands = {2};
  op.offset_factors = {"v"};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalPickGrad>();
  op.cases = {{"f32[2,3,vocab=5%2], i64[2,3]<5, f32[2,3]"}, {"f32[1,4], i64[1]<4, f32[1]"}};
  return op;
}

// Keyed by index and attribute: a proof draws no index to be ignored, and tells both apart.
struct EvalCounted {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const int64_t ignore = c.attrs.Int("ignore");
    const double attrs[] = {static_cast<double>(ignore)};
    FillResult(c, [&](int64_t i) {
      const int64_t index = c.in(0).index[static_cast<size_t>(i)];
      return c.model.Indexed("counted", attrs, {index},
                             [=] { return index == ignore ? 0.0 : 1.0; });
    });
  }
};

OpDef Counted() {
  OpDef op = OfEachIndex("t", "w");
  op.name = "counted";
  op.precision = Precision::kWide;
  op.doc = "1 for every index, 0 for one that is to be ignored: the weights of targets.";
  op.attrs = {{"ignore", AttrKind::kInt}};
  op.eval = EvalWith<EvalCounted>();
  op.cases = {{"i64[2,3]<3", {{"ignore", int64_t{2}}}}, {"i64[4]<9", {{"ignore", int64_t{-100}}}}};
  return op;
}

struct EvalCrossEntropyGrad {
  template <class M>
  static void Run(EvalContext<M>& c) {
    const M& m = c.model;
    ForEachLogit(c, [&](size_t row, int64_t v, size_t i) {
      auto dl = m.Mul(m.ExpDiff(c.in(0).real[i], c.in(1).real[row]), c.in(2).real[row]);
      if (LocalTarget(c, c.in(3).index[row]) == v) dl = m.Add(dl, c.in(4).real[row]);
      c.out(0).real[i] = dl;
    });
  }
};

OpDef CrossEntropyGrad() {
  OpDef op;
  op.name = "cross_entropy_grad";
  op.doc =
      "Both gradients that reach the logits in one pass: exp(l - m) * dz, and dp at element t.";
  op.operands = {"l", "m", "dz", "t", "dp"};
  op.results = {"dl"};
  op.index_operands = {3};
  op.wide_operands = {1, 2, 4};
  op.rule = "... v, ..., ..., ..., ... -> ... v";
  op.linearity = Linearity::kJoint;
  op.linear_operands = {2, 4};
  op.offset_factors = {"v"};
  op.no_grad = kSecondOrder;
  op.flops_per_point = 7;
  op.in_place = {{0, 0}};
  op.eval = EvalWith<EvalCrossEntropyGrad>();
  op.expand = [](EmitContext& c) -> std::vector<ValueId> {
    const ValueId from_sum = c.Emit("exp_sum_grad", {c.input(0), c.input(1), c.input(2)});
    const ValueId from_pick = c.Emit("pick_grad", {c.input(0), c.input(3), c.input(4)});
    return {c.Emit("add", {from_sum, from_pick})};
  };
  op.replaces_expansion = [](const OpUse&) { return true; };
  op.cases = {{"f32[2,3,vocab=5%2], f32[2,3], f32[2,3], i64[2,3]<5, f32[2,3]"},
              {"f32[1,4], f32[1], f32[1], i64[1]<4, f32[1]"}};
  return op;
}

}  // namespace

std::vector<OpDef> LossOps() {
  return {ExpSum(), ExpSumGrad(), LogShift(), Pick(), PickGrad(), Counted(), CrossEntropyGrad()};
}

}  // namespace mgc
