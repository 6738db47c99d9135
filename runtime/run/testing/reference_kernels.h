// A kernel for every op: its reference evaluation in double. Slow, and allocates: for tests only.

#ifndef MGC_RUNTIME_RUN_TESTING_REFERENCE_KERNELS_H_
#define MGC_RUNTIME_RUN_TESTING_REFERENCE_KERNELS_H_

#include <vector>

#include "kernels/kernel.h"

namespace mgc {

std::vector<KernelEntry> ReferenceKernels();

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_REFERENCE_KERNELS_H_
