// The third model of graph/eval/models/scalar.h: dual numbers over pairs of residues, for exact
// derivatives.
//
// A scalar is a value and its derivative along one direction, carried along by the rules of
// differentiation. Values are those of a ResidueModel of the same key, so that the derivative of an
// op, evaluated here, and what its gradient rule emits, evaluated there, are equal to the last bit
// or the rule is wrong. (A rule that holds for real numbers only, by s^2 + c^2 = 1 say, is wrong
// here: the proof of a plan needs rules that hold in all models.)
//
// Max passes on the derivative of the operand that wins. Random numbers and what is indexed are
// constants.

#ifndef MGC_GRAPH_EVAL_MODELS_DUAL_MODEL_H_
#define MGC_GRAPH_EVAL_MODELS_DUAL_MODEL_H_

#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/eval/models/residue_model.h"

namespace mgc {

struct DualPair {
  ResiduePair value;
  ResiduePair tangent;
};

class DualModel {
 public:
  using Scalar = DualPair;

  explicit DualModel(uint64_t key) : values_(key) {}

  DualPair Constant(double x) const { return {values_.Constant(x), {}}; }
  DualPair Size(int64_t n) const { return {values_.Size(n), {}}; }
  DualPair Ratio(int64_t a, int64_t b) const { return {values_.Ratio(a, b), {}}; }
  DualPair Add(const DualPair& x, const DualPair& y) const {
    return {x.value + y.value, x.tangent + y.tangent};
  }
  DualPair Sub(const DualPair& x, const DualPair& y) const {
    return {x.value - y.value, x.tangent - y.tangent};
  }
  DualPair Mul(const DualPair& x, const DualPair& y) const {
    return {x.value * y.value, x.tangent * y.value + x.value * y.tangent};
  }
  DualPair Inv(const DualPair& x) const {
    const ResiduePair inverse = values_.Inv(x.value);
    return {inverse, ResiduePair() - x.tangent * inverse * inverse};
  }
  DualPair NegInf() const { return {values_.NegInf(), {}}; }
  DualPair Max(const DualPair& x, const DualPair& y) const {
    return values_.Max(x.value, y.value) == x.value ? x : y;
  }
  DualPair ExpDiff(const DualPair& a, const DualPair& m) const {
    const ResiduePair value = values_.ExpDiff(a.value, m.value);
    return {value, (a.tangent - m.tangent) * value};
  }
  DualPair LogShift(const DualPair& z, const DualPair& m) const {
    const ResiduePair value = values_.LogShift(z.value, m.value);
    if (z.tangent.IsZero()) return {value, m.tangent};  // z may be zero here
    return {value, m.tangent + z.tangent * values_.Inv(z.value)};
  }
  DualPair Select(const DualPair& flag, const DualPair& x, const DualPair& y) const {
    return Add(y, Mul(flag, Sub(x, y)));
  }
  // By the derivatives that ScalarFunctions() declares.
  DualPair Fn(absl::string_view name, std::initializer_list<DualPair> args) const;
  DualPair Random(uint64_t seed, uint64_t stream, uint64_t index, double keep) const {
    return {values_.Random(seed, stream, index, keep), {}};
  }
  template <class Real>
  DualPair Indexed(absl::string_view name, absl::Span<const double> attrs,
                   std::initializer_list<int64_t> index, const Real& real) const {
    return {values_.Indexed(name, attrs, index, real), {}};
  }
  template <class Exact>
  int64_t IndexBelow(int64_t bound, absl::string_view name, absl::Span<const double> attrs,
                     std::initializer_list<int64_t> index, const Exact& exact) const {
    return values_.IndexBelow(bound, name, attrs, index, exact);
  }

  // The model of the values, which counts calls and denominators.
  const ResidueModel& values() const { return values_; }
  // How often a derivative was needed that no one has declared; it was taken as zero.
  int64_t missing_derivatives() const { return missing_derivatives_; }

 private:
  ResidueModel values_;
  mutable int64_t missing_derivatives_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_MODELS_DUAL_MODEL_H_
