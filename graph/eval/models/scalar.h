// The scalar concept of reference evaluation, and its first model: double. The others are
// graph/eval/models/residue_model.h and graph/eval/models/dual_model.h.
//
// Every op's meaning is written once, as a template over a model `M` of scalars. A model offers
// exact constants, + - x and the inverse, named functions with declared derivatives, the two
// exponentials a stable softmax needs, and a lattice maximum. Constants are finite. It offers no
// `<` and no way from a scalar to a bool or a number, so that the same evaluation runs over
// doubles, over residues modulo a prime (exact equality of plans) and over dual numbers (checks of
// gradients). Indices, masks and positions are int64, outside the concept.
//
//   Constant(x)         a real constant        Size(n)     a constant that is a size
//   Ratio(a, b)         the exact quotient     Inv(a)      1 / a
//   Add, Sub, Mul       ring operations        NegInf()    neutral element of Max
//   Max(a, b)           lattice maximum        ExpDiff(a, m)   exp(a - m)
//   LogShift(z, m)      m + log z              Fn(name, args)  one of ScalarFunctions()
//   Select(flag, a, b)  a where flag is 1, b where it is 0; of residues flag a + (1 - flag) b
//   Random(seed, stream, index, keep)          1 / keep with probability keep, else 0
//   Indexed(name, attrs, index, real)          real(), told apart by name, attributes and index: a
//                                              number that attributes give through a size
//   IndexBelow(bound, name, attrs, index, exact)   exact(), in [0, bound), an index of that kind
//
// Further members (top_k, quantize, cast, equal) come with the first op that needs them.

#ifndef MGC_GRAPH_EVAL_MODELS_SCALAR_H_
#define MGC_GRAPH_EVAL_MODELS_SCALAR_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// A derivative coefficient * f(x)^power that a function f has in terms of itself.
struct PowerDerivative {
  double coefficient;  // 0: none is declared
  int power;
};

// A named elementwise function and what the models need to know of it.
struct ScalarFunction {
  absl::string_view name;
  int arity;
  bool zero_at_zero;  // f(0) = 0: padding stays padding
  double (*real)(absl::Span<const double> args);
  // Names of the partial derivatives, one per argument, themselves functions of the same arguments;
  // empty where there is none, as where none is needed or a function has a kink.
  absl::string_view derivative[2];
  // Instead, of a function of one argument.
  PowerDerivative own_derivative;
};

// All functions an op may name.
absl::Span<const ScalarFunction> ScalarFunctions();
// The function of that name. Names are written in the meanings of ops only: one without a row is a
// mistake of ours and ends the program, naming it.
const ScalarFunction& ScalarFunctionOf(absl::string_view name);

// Real numbers as doubles. Stateless.
class DoubleModel {
 public:
  using Scalar = double;

  double Constant(double x) const { return x; }
  double Size(int64_t n) const { return static_cast<double>(n); }
  double Ratio(int64_t a, int64_t b) const {
    return static_cast<double>(a) / static_cast<double>(b);
  }
  double Add(double a, double b) const { return a + b; }
  double Sub(double a, double b) const { return a - b; }
  double Mul(double a, double b) const { return a * b; }
  double Inv(double a) const { return 1.0 / a; }
  double NegInf() const { return -std::numeric_limits<double>::infinity(); }
  double Max(double a, double b) const { return a > b ? a : b; }
  // exp(-inf - m) is 0 for every m, so that rows without a term stay zero.
  double ExpDiff(double a, double m) const { return a == NegInf() ? 0.0 : std::exp(a - m); }
  double LogShift(double z, double m) const { return m + std::log(z); }
  double Select(double flag, double a, double b) const { return flag != 0 ? a : b; }
  double Fn(absl::string_view name, std::initializer_list<double> args) const {
    return ScalarFunctionOf(name).real(absl::MakeConstSpan(args.begin(), args.size()));
  }
  // Counter-based (graph/base/random.h): the element survives with probability `keep`.
  double Random(uint64_t seed, uint64_t stream, uint64_t index, double keep) const;
  template <class Real>
  double Indexed(absl::string_view /*name*/, absl::Span<const double> /*attrs*/,
                 std::initializer_list<int64_t> /*index*/, const Real& real) const {
    return real();
  }
  template <class Exact>
  int64_t IndexBelow(int64_t /*bound*/, absl::string_view /*name*/,
                     absl::Span<const double> /*attrs*/, std::initializer_list<int64_t> /*index*/,
                     const Exact& exact) const {
    return exact();
  }
};

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_MODELS_SCALAR_H_
