// Accesses of device code that compilers do not tell of: memcpy and the like (access.h).

#ifndef MGC_KERNELS_CUDA_EMULATOR_NOTE_ACCESS_H_
#define MGC_KERNELS_CUDA_EMULATOR_NOTE_ACCESS_H_

#include <cstddef>

namespace mgc::cuda::emulator {

// By the running thread. Nothing where accesses are not watched.
void NoteAccess(const void* at, size_t bytes, bool writes);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_NOTE_ACCESS_H_
