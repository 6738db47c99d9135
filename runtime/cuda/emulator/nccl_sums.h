// What the emulated NCCL does to bytes.

#ifndef MGC_RUNTIME_CUDA_EMULATOR_NCCL_SUMS_H_
#define MGC_RUNTIME_CUDA_EMULATOR_NCCL_SUMS_H_

#include <cstddef>
#include <vector>

#include "runtime/cuda/emulator/nccl.h"

namespace mgc::cuda::emulator {

// Bytes of an element; 0 for a type that is not one.
size_t NcclSizeOf(ncclDataType_t type);
// Whether terms of the type are joined by the operation here.
bool NcclReduces(ncclDataType_t type, ncclRedOp_t op);

// result[i] = joined over ranks of terms[rank][i], in the order of a ring.
std::vector<char> NcclReduce(const std::vector<const char*>& terms, size_t count,
                             ncclDataType_t type, ncclRedOp_t op);

}  // namespace mgc::cuda::emulator

#endif  // MGC_RUNTIME_CUDA_EMULATOR_NCCL_SUMS_H_
