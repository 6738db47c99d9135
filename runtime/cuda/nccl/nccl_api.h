// NCCL: the library's, or the emulated one (runtime/cuda/emulator/nccl.h).

#ifndef MGC_RUNTIME_CUDA_NCCL_NCCL_API_H_
#define MGC_RUNTIME_CUDA_NCCL_NCCL_API_H_

#ifdef MGC_CUDA_EMULATED
#include "runtime/cuda/emulator/nccl.h"
#else
#include <nccl.h>
#endif

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mgc {

// OK, or what NCCL says went wrong with `what`; of a communicator with its own words for it.
absl::Status NcclStatus(ncclResult_t result, absl::string_view what, ncclComm_t comm = nullptr);

}  // namespace mgc

#endif  // MGC_RUNTIME_CUDA_NCCL_NCCL_API_H_
