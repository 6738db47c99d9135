// What sanitizers must know of memory and stacks that are made here.

#ifndef MGC_KERNELS_CUDA_EMULATOR_SANITIZER_H_
#define MGC_KERNELS_CUDA_EMULATOR_SANITIZER_H_

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define MGC_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define MGC_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MGC_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define MGC_THREAD_SANITIZER 1
#endif
#endif

#ifdef MGC_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef MGC_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace mgc::cuda::emulator {

#ifdef MGC_ADDRESS_SANITIZER
inline constexpr bool kAddressSanitizer = true;
inline void Poison(const void* at, size_t bytes) { ASAN_POISON_MEMORY_REGION(at, bytes); }
inline void Unpoison(const void* at, size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(at, bytes); }
inline void StartSwitch(void** fake, const void* stack, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, stack, bytes);
}
inline void FinishSwitch(void* fake, const void** from, size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void Poison(const void* /*at*/, size_t /*bytes*/) {}
inline void Unpoison(const void* /*at*/, size_t /*bytes*/) {}
inline void StartSwitch(void** /*fake*/, const void* /*stack*/, size_t /*bytes*/) {}
inline void FinishSwitch(void* /*fake*/, const void** /*from*/, size_t* /*bytes*/) {}
#endif

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_SANITIZER_H_
