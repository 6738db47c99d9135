// What several families of ops share: rule texts and checks for operands aligned at the end, pieces
// of registrations and gradients, and walks over indices for reference evaluation.

#ifndef MGC_GRAPH_OPS_OP_HELPERS_H_
#define MGC_GRAPH_OPS_OP_HELPERS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/ir/op.h"

namespace mgc {

// --- Rules and checks

// InvalidArgument "<text> [<op>_c<number>]".
absl::Status Refuse(absl::string_view op, int number, absl::string_view text);

// Factor names of dims [begin, end): `d2 d3`. An op over any number of dims names them so.
std::string DimFactorNames(int begin, int end);

// The rule of an elementwise op whose operands are aligned at the end of operand 0:
// `d0 d1, d1 -> d0 d1`.
std::string TrailingRule(const OpUse& use);

// Refuses (as <op>_c1) operands with more dims than operand 0.
absl::Status CheckTrailing(absl::string_view op, const OpUse& use);

// Refuses (as <op>_c<number>) unless `dims` ascend strictly and lie in [0, ndim).
absl::Status CheckDimList(absl::string_view op, int number, absl::Span<const int64_t> dims,
                          int ndim);

// --- Registrations

// An op that makes an f32 of each index of its one operand, without its name, doc and meaning.
OpDef OfEachIndex(absl::string_view operand, absl::string_view result);

// --- Costs

// Bytes of a tensor, whatever its sizes.
double BytesOf(const TensorType& type);

// --- Gradients

// `value` in the element type of `like`.
ValueId AsTypeOf(GradContext& c, ValueId value, ValueId like);

// `value` times a constant.
ValueId Scaled(GradContext& c, ValueId value, double factor);

// The gradient `full` of a broadcast value of `ndim` dims, summed over the leading dims that it was
// repeated along.
ValueId SumToTrailing(GradContext& c, ValueId full, int ndim);

// Attributes of a `broadcast` that inserts `dims` of `whole`.
Attrs BroadcastAttrs(const TensorType& whole, absl::Span<const int64_t> dims);

// Names of dims as an attribute: separated by spaces, `_` for none.
std::string JoinDimNames(absl::Span<const Dim> dims);
// Inverse of JoinDimNames; the caller checks the number.
std::vector<std::string> SplitDimNames(absl::string_view names);

// --- Evaluation

// Visits a box of indices in row-major order, the last dim fastest, and keeps one linear offset per
// list of strides:
//   for (Walk walk(shape, {strides}); !walk.done(); walk.Next()) use(walk.offset(0));
class Walk {
 public:
  Walk(std::vector<int64_t> extents, std::vector<std::vector<int64_t>> strides);
  bool done() const { return done_; }
  void Next();
  int64_t offset(int list) const { return offsets_[static_cast<size_t>(list)]; }

 private:
  std::vector<int64_t> extents_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<int64_t> index_;
  std::vector<int64_t> offsets_;
  bool done_ = false;
};

template <class S>
void CopyElement(const HostTensor<S>& from, int64_t i, HostTensor<S>* to, int64_t j) {
  if (from.is_index) {
    to->index[static_cast<size_t>(j)] = from.index[static_cast<size_t>(i)];
  } else {
    to->real[static_cast<size_t>(j)] = from.real[static_cast<size_t>(i)];
  }
}

// Element of operand `k` that stands against element `i` of operand 0, aligned at the end.
template <class M>
const typename M::Scalar& Aligned(const EvalContext<M>& c, int k, int64_t i) {
  const auto& values = c.in(k).real;
  return values[static_cast<size_t>(i) % values.size()];
}

// Every element of result 0 is fn(its linear index).
template <class M, class F>
void FillResult(EvalContext<M>& c, F fn) {
  for (size_t i = 0; i < c.out(0).real.size(); ++i) {
    c.out(0).real[i] = fn(static_cast<int64_t>(i));
  }
}

// The only element of a scalar operand.
template <class M>
const typename M::Scalar& ScalarOf(const EvalContext<M>& c, int k) {
  return c.in(k).real[0];
}

// The result is operand 0.
struct EvalIdentity {
  template <class M>
  static void Run(EvalContext<M>& c) {
    for (int64_t i = 0; i < c.in(0).size(); ++i) CopyElement(c.in(0), i, &c.out(0), i);
  }
};

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_OP_HELPERS_H_
