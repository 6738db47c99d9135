#include "passes/config/nearest_legal.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_join.h"

namespace mgc {

int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

std::string NearestMultiples(int64_t value, int64_t base) {
  const int64_t below = std::max<int64_t>(value, 0) / base * base;
  std::vector<int64_t> found;
  if (below >= base) found.push_back(below);
  if (below != value && below <= std::numeric_limits<int64_t>::max() - base) {
    found.push_back(below + base);
  }
  return absl::StrJoin(found, ", ");
}

std::string NearestLegal(int64_t value, int64_t limit, absl::FunctionRef<bool(int64_t)> legal) {
  std::vector<int64_t> found;
  for (int64_t below = std::min(value - 1, limit); below >= 1; --below) {
    if (!legal(below)) continue;
    found.push_back(below);
    break;
  }
  for (int64_t above = std::max<int64_t>(value, 0); above < limit; ++above) {
    if (!legal(above + 1)) continue;
    found.push_back(above + 1);
    break;
  }
  return absl::StrJoin(found, ", ");
}

}  // namespace mgc
