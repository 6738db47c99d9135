// CUDA's runtime for host code: the toolkit's, or the emulated one
// (kernels/cuda/emulator/runtime.h).

#ifndef MGC_KERNELS_CUDA_API_H_
#define MGC_KERNELS_CUDA_API_H_

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/runtime.h"
#else
#include <cuda_runtime_api.h>
#endif

#endif  // MGC_KERNELS_CUDA_API_H_
