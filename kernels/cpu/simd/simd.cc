#include "kernels/cpu/simd/simd.h"

namespace mgc::cpu {
namespace {

SimdLevel DetectSimdLevel() {
#if MGC_SIMD_MULTIVERSION
  if (__builtin_cpu_supports("x86-64-v4")) {
    return __builtin_cpu_supports("avx512bf16") ? SimdLevel::kAvx512Bf16 : SimdLevel::kAvx512;
  }
  if (__builtin_cpu_supports("x86-64-v3")) return SimdLevel::kAvx2;
#endif
  return SimdLevel::kBaseline;
}

}  // namespace

SimdLevel BestSimdLevel() {
  static const SimdLevel level = DetectSimdLevel();
  return level;
}

}  // namespace mgc::cpu
