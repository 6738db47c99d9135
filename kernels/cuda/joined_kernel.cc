#include "kernels/cuda/joined_kernel.h"

#include <algorithm>
#include <functional>

namespace mgc::cuda {
namespace {

// Of n elements each; a null pointer is no array.
bool Overlap(const float* a, int64_t a_count, const float* b, int64_t b_count) {
  const std::less<const float*> before;
  return a != nullptr && b != nullptr && before(a, b + b_count) && before(b, a + a_count);
}

// Whether `part` writes what `other` reads or writes.
bool WritesInto(const StepPart& part, const StepPart& other) {
  for (const float* result : part.arrays.results) {
    const auto meets = [&](const float* array) { return Overlap(result, part.n, array, other.n); };
    const StepArrays& arrays = other.arrays;
    if (std::any_of(std::begin(arrays.operands), std::end(arrays.operands), meets)) return true;
    if (std::any_of(std::begin(arrays.results), std::end(arrays.results), meets)) return true;
  }
  return false;
}

}  // namespace

bool MayJoin(absl::Span<const StepPart> before, const StepPart& part) {
  return std::none_of(before.begin(), before.end(), [&](const StepPart& other) {
    return WritesInto(part, other) || WritesInto(other, part);
  });
}

}  // namespace mgc::cuda
