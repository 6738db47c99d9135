// How an op's meaning is written: a template over the scalar model, run on host tensors of one
// rank.
//
//   struct EvalScale {
//     template <class M> static void Run(EvalContext<M>& c) {
//       for (int64_t i = 0; i < c.out(0).size(); ++i) c.out(0).real[i] = ...;
//     }
//   };
//   op.eval = EvalWith<EvalScale>();
//
// It is written to be read, not to be fast.
//
// Room beyond a factor's valid piece (a padded vocabulary) is zero in every value: EvalWith clears
// it in the results, so that an op only has to care where a zero operand would count (exp(0), max).

#ifndef MGC_GRAPH_EVAL_MODELS_OP_EVAL_H_
#define MGC_GRAPH_EVAL_MODELS_OP_EVAL_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/base/status.h"
#include "graph/eval/models/dual_model.h"
#include "graph/eval/models/residue_model.h"
#include "graph/eval/models/scalar.h"
#include "graph/types/attrs.h"
#include "graph/types/factor_rule.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// A dense row-major tensor on the host: scalars of a model, or int64 indices.
template <class S>
struct HostTensor {
  std::vector<int64_t> shape;
  bool is_index = false;
  std::vector<S> real;
  std::vector<int64_t> index;

  int64_t size() const { return NumElements(shape); }
  int64_t dim(int i) const { return shape[static_cast<size_t>(i)]; }
  static HostTensor Make(const std::vector<int64_t>& shape, bool is_index, const S& zero = S()) {
    HostTensor tensor;
    tensor.shape = shape;
    tensor.is_index = is_index;
    if (is_index) {
      tensor.index.assign(static_cast<size_t>(tensor.size()), 0);
    } else {
      tensor.real.assign(static_cast<size_t>(tensor.size()), zero);
    }
    return tensor;
  }
};

// Copies `count` elements, from index `at` of one tensor to index `to_at` of another of its kind.
template <class S>
void CopyElements(const HostTensor<S>& from, int64_t at, int64_t count, HostTensor<S>* to,
                  int64_t to_at) {
  if (from.is_index) {
    std::copy_n(from.index.begin() + at, count, to->index.begin() + to_at);
  } else {
    std::copy_n(from.real.begin() + at, count, to->real.begin() + to_at);
  }
}

// What one evaluation of one node on one rank sees. Results have their shape and are zero.
template <class M>
struct EvalContext {
  using S = typename M::Scalar;

  const M& model;
  const Attrs& attrs;
  const FactorRule& rule;
  // Per factor: which elements of the whole dim this rank holds. The micro-batch's first sample is
  // part of the batch factor's begin.
  std::vector<DimPiece> pieces;
  uint64_t seed = 0;
  std::vector<const HostTensor<S>*> inputs;
  std::vector<HostTensor<S>*> outputs;

  const HostTensor<S>& in(int i) const { return *inputs[static_cast<size_t>(i)]; }
  HostTensor<S>& out(int i) const { return *outputs[static_cast<size_t>(i)]; }
  const DimPiece& piece(absl::string_view factor) const {
    const int index = rule.Find(factor);
    MGC_CHECK(index >= 0) << "no factor " << factor;
    return pieces[static_cast<size_t>(index)];
  }
};

// One meaning in each model.
struct OpEval {
  void (*real)(EvalContext<DoubleModel>&) = nullptr;
  void (*residue)(EvalContext<ResidueModel>&) = nullptr;
  void (*dual)(EvalContext<DualModel>&) = nullptr;

  void operator()(EvalContext<DoubleModel>& context) const { real(context); }
  void operator()(EvalContext<ResidueModel>& context) const { residue(context); }
  void operator()(EvalContext<DualModel>& context) const { dual(context); }
};

namespace internal {

// Zeroes what a result holds beyond the valid piece of a dim.
template <class M>
void ClearPadding(EvalContext<M>& c) {
  for (size_t r = 0; r < c.outputs.size(); ++r) {
    HostTensor<typename M::Scalar>& out = *c.outputs[r];
    if (out.shape.size() != c.rule.results[r].size()) continue;  // a flat piece of a tile
    int64_t inner = out.size();
    for (size_t d = 0; d < out.shape.size(); ++d) {
      const int64_t room = out.shape[d];
      const int64_t outer = out.size() / inner;
      inner /= room;
      const DimFactors& factors = c.rule.results[r][d];
      if (factors.size() != 1 || c.pieces[factors[0]].valid >= room) continue;
      const int64_t valid = c.pieces[factors[0]].valid;
      for (int64_t o = 0; o < outer; ++o) {
        const int64_t begin = (o * room + valid) * inner;
        const int64_t end = (o + 1) * room * inner;
        for (int64_t i = begin; i < end; ++i) {
          if (out.is_index) {
            out.index[i] = 0;
          } else {
            out.real[i] = c.model.Constant(0);
          }
        }
      }
    }
  }
}

template <class Impl, class M>
void RunAndClear(EvalContext<M>& c) {
  Impl::Run(c);
  ClearPadding(c);
}

}  // namespace internal

template <class Impl>
OpEval EvalWith() {
  return {&internal::RunAndClear<Impl, DoubleModel>, &internal::RunAndClear<Impl, ResidueModel>,
          &internal::RunAndClear<Impl, DualModel>};
}

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_MODELS_OP_EVAL_H_
