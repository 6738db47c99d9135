// What the address sanitizer must know of memory and stacks that are made here.

#ifndef MGC_KERNELS_CUDA_EMULATOR_SANITIZER_H_
#define MGC_KERNELS_CUDA_EMULATOR_SANITIZER_H_

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define MGC_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MGC_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef MGC_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace mgc::cuda::emulator {

#ifdef MGC_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitizer = true;
inline void Poison(const void* at, size_t bytes) { ASAN_POISON_MEMORY_REGION(at, bytes); }
inline void Unpoison(const void* at, size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(at, bytes); }
#else
inline constexpr bool kAddressSanitizer = false;
inline void Poison(const void* /*at*/, size_t /*bytes*/) {}
inline void Unpoison(const void* /*at*/, size_t /*bytes*/) {}
#endif

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_SANITIZER_H_
