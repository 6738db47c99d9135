// One source, three instruction sets: a kernel's inner loops live in a `.inc` file written with the
// fixed-width vectors of vec.inc, and simd_each.inc compiles that file once per instruction set
// into the namespaces `baseline` (whatever the compiler's default is), `avx2` (x86-64-v3) and
// `avx512` (x86-64-v4). MGC_SIMD_CALL picks the best one that the machine has, at run time. A
// program so keeps one binary for every machine, and the same machine always takes the same path,
// which is what makes a run repeatable bit for bit.
//
// A fourth one, `avx512_bf16` (x86-64-v4 and AVX512_BF16), is for bodies that ask for it: products
// of bf16, in attention too. All others take `avx512` there.
//
// Only GCC on x86-64 builds the upper levels; elsewhere everything is `baseline`.
#ifndef MGC_KERNELS_CPU_SIMD_SIMD_H_
#define MGC_KERNELS_CPU_SIMD_SIMD_H_

#include "absl/strings/string_view.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MGC_SIMD_MULTIVERSION 1
#else
#define MGC_SIMD_MULTIVERSION 0
#endif

#define MGC_SIMD_INLINE [[gnu::always_inline]] inline

// On a lambda inside a body, between its parameters and its braces.
#define MGC_SIMD_LAMBDA __attribute__((always_inline))

// Before a loop over vectors in registers: its bounds are constants, and it must vanish.
#if defined(__clang__)
#define MGC_SIMD_UNROLL _Pragma("unroll")
#else
#define MGC_SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

namespace mgc::cpu {

// Each has all instructions of those before it.
enum class SimdLevel { kBaseline, kAvx2, kAvx512, kAvx512Bf16 };

// The best level that this machine and this build have; constant during a run.
SimdLevel BestSimdLevel();

// For reports: `AVX-512 with BF16`.
absl::string_view NameOf(SimdLevel level);

}  // namespace mgc::cpu

// Calls `function` of the best level's namespace. The file must have included simd_each.inc with
// the body that defines it.
#if MGC_SIMD_MULTIVERSION
#define MGC_SIMD_CALL(function, ...)                                                             \
  (::mgc::cpu::BestSimdLevel() >= ::mgc::cpu::SimdLevel::kAvx512 ? avx512::function(__VA_ARGS__) \
   : ::mgc::cpu::BestSimdLevel() == ::mgc::cpu::SimdLevel::kAvx2                                 \
       ? avx2::function(__VA_ARGS__)                                                             \
       : baseline::function(__VA_ARGS__))
// The same with a body that was compiled for `avx512_bf16` too.
#define MGC_SIMD_CALL_WITH_BF16(function, ...)                       \
  (::mgc::cpu::BestSimdLevel() >= ::mgc::cpu::SimdLevel::kAvx512Bf16 \
       ? avx512_bf16::function(__VA_ARGS__)                          \
       : MGC_SIMD_CALL(function, __VA_ARGS__))
#else
#define MGC_SIMD_CALL(function, ...) baseline::function(__VA_ARGS__)
#define MGC_SIMD_CALL_WITH_BF16(function, ...) baseline::function(__VA_ARGS__)
#endif

#endif  // MGC_KERNELS_CPU_SIMD_SIMD_H_
