// Local logits of one rank, for host and device code.

#ifndef MGC_KERNELS_SHARED_LOGITS_SHAPE_H_
#define MGC_KERNELS_SHARED_LOGITS_SHAPE_H_

#include <cstdint>

namespace mgc {

struct LogitsShape {
  int64_t rows = 0;
  int64_t cols = 0;    // elements from row to row
  int64_t valid = 0;   // real columns, <= cols
  int64_t offset = 0;  // vocabulary id of column 0
};

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_LOGITS_SHAPE_H_
