#include "kernels/simd_level.h"

namespace mgc {
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

absl::string_view NameOf(SimdLevel level) {
  switch (level) {
    case SimdLevel::kBaseline:
      return "the compiler's baseline";
    case SimdLevel::kAvx2:
      return "AVX2";
    case SimdLevel::kAvx512:
      return "AVX-512";
    case SimdLevel::kAvx512Bf16:
      return "AVX-512 with BF16";
  }
  return "";
}

std::vector<SimdLevel> AllSimdLevels() {
  return {SimdLevel::kBaseline, SimdLevel::kAvx2, SimdLevel::kAvx512, SimdLevel::kAvx512Bf16};
}

absl::string_view WordOf(SimdLevel level) {
  switch (level) {
    case SimdLevel::kBaseline:
      return "baseline";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
    case SimdLevel::kAvx512Bf16:
      return "avx512-bf16";
  }
  return "";
}

}  // namespace mgc
