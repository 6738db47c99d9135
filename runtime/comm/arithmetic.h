// Sums and maxima of collectives: the one place where terms of several ranks are added.
//
// Every element is added in ascending order of the group's members, whoever adds and wherever the
// terms lie, so that neither a split of the work nor a process boundary changes a bit. Elements of
// two bytes are added in f32 and rounded once, at the end; what travels in between is the f32.

#ifndef MGC_RUNTIME_COMM_ARITHMETIC_H_
#define MGC_RUNTIME_COMM_ARITHMETIC_H_

#include <cstdint>

#include "absl/types/span.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct Arithmetic {
  int64_t narrow_bytes = 0;  // of an element of a tile
  int64_t wide_bytes = 0;    // of an element of a sum that is not complete
  // sum[i] = before[i] op terms[0][at + i] op terms[1][at + i] op ..., for i in [0, count). Without
  // `before` the first term begins; with it, `before` may be `sum` itself. Sums are wide.
  void (*add)(const char* before, absl::Span<const char* const> terms, int64_t at, int64_t count,
              char* sum) = nullptr;
  // Rounds a complete sum to elements of a tile; null where these are the same.
  void (*round)(const char* sum, int64_t count, char* out) = nullptr;
};

// Of sums, or with `max` of maxima; null for a type that nothing adds.
const Arithmetic* ArithmeticOf(DType dtype, bool max);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_ARITHMETIC_H_
