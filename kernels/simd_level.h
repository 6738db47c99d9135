// The instruction sets that kernels are compiled for (kernels/cpu/simd/simd.h). Kernels of
// different ones round differently, so that all processes of a run must use the same.
#ifndef MGC_KERNELS_SIMD_LEVEL_H_
#define MGC_KERNELS_SIMD_LEVEL_H_

#include <vector>

#include "absl/strings/string_view.h"

// Only GCC on x86-64 builds the upper levels; elsewhere everything is `baseline`.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MGC_SIMD_MULTIVERSION 1
#else
#define MGC_SIMD_MULTIVERSION 0
#endif

namespace mgc {

// Each has all instructions of those before it.
enum class SimdLevel { kBaseline, kAvx2, kAvx512, kAvx512Bf16 };

// The best level that this machine and this build have; constant during a run.
SimdLevel BestSimdLevel();

// All of them, ascending.
std::vector<SimdLevel> AllSimdLevels();

// For reports: `AVX-512 with BF16`.
absl::string_view NameOf(SimdLevel level);
// For command lines: `avx512-bf16`.
absl::string_view WordOf(SimdLevel level);

}  // namespace mgc

#endif  // MGC_KERNELS_SIMD_LEVEL_H_
