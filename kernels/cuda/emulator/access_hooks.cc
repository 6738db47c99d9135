// What device code that was compiled with -fsanitize=thread calls (access.h).
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/emulator/access.h"
#include "kernels/cuda/emulator/block.h"
#include "kernels/cuda/emulator/note_access.h"
#include "kernels/cuda/emulator/sanitizer.h"

namespace mgc::cuda::emulator {

void NoteAccess(const void* at, size_t bytes, bool writes) {
  if (AccessWatch::enabled()) ToldOfAccess(at, bytes, writes, __builtin_return_address(0));
}

}  // namespace mgc::cuda::emulator

#ifndef MGC_THREAD_SANITIZER  // which has them itself

namespace {

using mgc::cuda::emulator::AccessWatch;
using mgc::cuda::emulator::ToldOfAccess;

}  // namespace

// The names are the compiler's. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void __tsan_init() { AccessWatch::Enable(); }
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** /*at*/, void* /*value*/) {}
void __tsan_vptr_read(void** /*at*/) {}
void __tsan_read_range(void* at, size_t bytes) {
  ToldOfAccess(at, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, size_t bytes) {
  ToldOfAccess(at, bytes, true, __builtin_return_address(0));
}

#define MGC_ACCESS(name, bytes, writes)                           \
  void __tsan_##name##bytes(void* at) {                           \
    ToldOfAccess(at, bytes, writes, __builtin_return_address(0)); \
  }
#define MGC_ACCESSES(bytes)                \
  MGC_ACCESS(read, bytes, false)           \
  MGC_ACCESS(write, bytes, true)           \
  MGC_ACCESS(unaligned_read, bytes, false) \
  MGC_ACCESS(unaligned_write, bytes, true)
MGC_ACCESSES(1)
MGC_ACCESSES(2)
MGC_ACCESSES(4)
MGC_ACCESSES(8)
MGC_ACCESSES(16)
#undef MGC_ACCESSES
#undef MGC_ACCESS

// Atomics of host code in the same files, say of what counts references: plain ones do as well.
#define MGC_ATOMICS(bits, type)                                                                    \
  type __tsan_atomic##bits##_load(const volatile type* at, int) {                                  \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* at, type value, int) {                           \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_add(volatile type* at, type value, int) {                       \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_sub(volatile type* at, type value, int) {                       \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* at, type value, int) {                        \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* at, type* expected, type value, \
                                                    int, int) {                                    \
    return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,                   \
                                       __ATOMIC_SEQ_CST);                                          \
  }
MGC_ATOMICS(8, uint8_t)
MGC_ATOMICS(32, uint32_t)
MGC_ATOMICS(64, uint64_t)
#undef MGC_ATOMICS
}
// NOLINTEND(bugprone-reserved-identifier)

#endif
