// One source, three instruction sets: a kernel's inner loops live in a `.inc` file written with the
// fixed-width vectors of vec.inc, and simd_each.inc compiles that file once per instruction set
// into the namespaces `baseline` (whatever the compiler's default is), `avx2` (x86-64-v3) and
// `avx512` (x86-64-v4). MGC_SIMD_CALL takes the one of a Parallel's level, at run time: the best
// that the machine has, unless a lower one is asked for. A program so keeps one binary for every
// machine, and the same level always takes the same path, which is what makes a run repeatable bit
// for bit.
//
// A fourth one, `avx512_bf16` (x86-64-v4 and AVX512_BF16), is for bodies that ask for it: products
// of bf16, in attention too. All others take `avx512` there.
#ifndef MGC_KERNELS_CPU_SIMD_SIMD_H_
#define MGC_KERNELS_CPU_SIMD_SIMD_H_

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "kernels/parallel.h"
#include "kernels/simd_level.h"

#define MGC_SIMD_INLINE [[gnu::always_inline]] inline

// On a lambda inside a body, between its parameters and its braces.
#define MGC_SIMD_LAMBDA __attribute__((always_inline))

// Before a loop over vectors in registers: its bounds are constants, and it must vanish.
#if defined(__clang__)
#define MGC_SIMD_UNROLL _Pragma("unroll")
#else
#define MGC_SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

// Calls `function` of the namespace of a Parallel's level. The file must have included
// simd_each.inc with the body that defines it.
#if MGC_SIMD_MULTIVERSION
#define MGC_SIMD_CALL(parallel, function, ...)                                          \
  ((parallel).simd_level() >= ::mgc::SimdLevel::kAvx512 ? avx512::function(__VA_ARGS__) \
   : (parallel).simd_level() == ::mgc::SimdLevel::kAvx2 ? avx2::function(__VA_ARGS__)   \
                                                        : baseline::function(__VA_ARGS__))
// The same with a body that was compiled for `avx512_bf16` too.
#define MGC_SIMD_CALL_WITH_BF16(parallel, function, ...)    \
  ((parallel).simd_level() >= ::mgc::SimdLevel::kAvx512Bf16 \
       ? avx512_bf16::function(__VA_ARGS__)                 \
       : MGC_SIMD_CALL(parallel, function, __VA_ARGS__))
#else
#define MGC_SIMD_CALL(parallel, function, ...) \
  (static_cast<void>(parallel), baseline::function(__VA_ARGS__))
#define MGC_SIMD_CALL_WITH_BF16(parallel, function, ...) \
  MGC_SIMD_CALL(parallel, function, __VA_ARGS__)
#endif

#endif  // MGC_KERNELS_CPU_SIMD_SIMD_H_
