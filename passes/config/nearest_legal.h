// Nearest legal values, for the hints of violations.

#ifndef MGC_PASSES_CONFIG_NEAREST_LEGAL_H_
#define MGC_PASSES_CONFIG_NEAREST_LEGAL_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"

namespace mgc {

// a * b for positive numbers, INT64_MAX where that does not fit.
int64_t SaturatingMultiply(int64_t a, int64_t b);

// The multiples of `base` just below and just above `value`, as `8, 12`; multiples below `base` and
// above INT64_MAX are left out. base >= 1.
std::string NearestMultiples(int64_t value, int64_t base);

// The nearest numbers below and above `value` in [1, limit] that `legal` accepts, as `4, 8`; empty
// when there is none. Asks for at most `limit` numbers.
std::string NearestLegal(int64_t value, int64_t limit, absl::FunctionRef<bool(int64_t)> legal);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_NEAREST_LEGAL_H_
