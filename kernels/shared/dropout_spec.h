// From a use of dropout to what its kernels take, for the adapters of all backends.

#ifndef MGC_KERNELS_SHARED_DROPOUT_SPEC_H_
#define MGC_KERNELS_SHARED_DROPOUT_SPEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/shared/dropout.h"

namespace mgc {

struct DropoutUse {
  DropoutRule rule;
  IndexGrid grid;              // merged, of the micro-batch whose first sample is 0
  uint64_t sample_stride = 0;  // by which a later first sample moves its base
};

// Indices count the elements of the whole tensor row-major, modulo 2^64.
absl::StatusOr<DropoutUse> DropoutUseOf(const KernelSpec& spec);

}  // namespace mgc

#endif  // MGC_KERNELS_SHARED_DROPOUT_SPEC_H_
