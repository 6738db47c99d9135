#include "graph/eval/models/dual_model.h"

#include <cstdlib>

#include "graph/eval/models/scalar.h"

namespace mgc {
namespace {

ResiduePair Power(const ResidueModel& model, ResiduePair x, int power) {
  const ResiduePair base = power < 0 ? model.Inv(x) : x;
  ResiduePair result = model.Constant(1);
  for (int i = 0; i < std::abs(power); ++i) result = result * base;
  return result;
}

// Of the values of `args`; no function of the table has more than two.
ResiduePair Apply(const ResidueModel& model, absl::string_view name,
                  std::initializer_list<DualPair> args) {
  const DualPair* arg = args.begin();
  return args.size() == 1 ? model.Fn(name, {arg[0].value})
                          : model.Fn(name, {arg[0].value, arg[1].value});
}

}  // namespace

DualPair DualModel::Fn(absl::string_view name, std::initializer_list<DualPair> args) const {
  const ScalarFunction& function = ScalarFunctionOf(name);
  DualPair result{Apply(values_, name, args), {}};
  size_t i = 0;
  for (const DualPair& arg : args) {
    const absl::string_view derivative = function.derivative[i++];
    if (arg.tangent.IsZero()) continue;
    const PowerDerivative& own = function.own_derivative;
    if (!derivative.empty()) {
      result.tangent = result.tangent + arg.tangent * Apply(values_, derivative, args);
    } else if (own.coefficient != 0) {
      const ResiduePair slope =
          values_.Constant(own.coefficient) * Power(values_, result.value, own.power);
      result.tangent = result.tangent + arg.tangent * slope;
    } else {
      ++missing_derivatives_;
    }
  }
  return result;
}

}  // namespace mgc
