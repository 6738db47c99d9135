// The CPU's kernels by op name.
#ifndef MGC_KERNELS_CPU_CPU_KERNELS_H_
#define MGC_KERNELS_CPU_CPU_KERNELS_H_

#include <vector>

#include "kernels/kernel.h"

namespace mgc {

// One entry per op of the table but for collectives that move data between ranks: the runtime does.
// Real values are f32; ops on scalars and short vectors (norms, rates, the loss) also take f64.
std::vector<KernelEntry> CpuKernels();

}  // namespace mgc

#endif  // MGC_KERNELS_CPU_CPU_KERNELS_H_
