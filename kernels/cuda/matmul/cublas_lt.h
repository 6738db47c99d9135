// cuBLASLt for host code: the toolkit's, or the emulated one (kernels/cuda/emulator/cublas_lt.h).

#ifndef MGC_KERNELS_CUDA_MATMUL_CUBLAS_LT_H_
#define MGC_KERNELS_CUDA_MATMUL_CUBLAS_LT_H_

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/cublas_lt.h"
#else
#include <cublasLt.h>
#endif

#endif  // MGC_KERNELS_CUDA_MATMUL_CUBLAS_LT_H_
