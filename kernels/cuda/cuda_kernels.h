// A GPU's kernels by op name.

#ifndef MGC_KERNELS_CUDA_CUDA_KERNELS_H_
#define MGC_KERNELS_CUDA_CUDA_KERNELS_H_

#include <vector>

#include "kernels/cuda/f32_products.h"
#include "kernels/kernel.h"

namespace mgc {

// One entry per op of the table but for collectives that move data between ranks. Each issues to
// KernelRun::queue, a CUDA stream, reads addresses of the device and leaves `parallel` alone.
std::vector<KernelEntry> CudaKernels(F32Products f32 = F32Products::kWhole);

}  // namespace mgc

#endif  // MGC_KERNELS_CUDA_CUDA_KERNELS_H_
