#include "runtime/state/narrow_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "graph/base/status.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc {
namespace {

template <class Narrow, Narrow (*kRound)(float)>
void Round(absl::Span<const float> values, char* to) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Narrow value = kRound(values[i]);
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
  }
}

template <class Narrow>
void Widen(const char* from, absl::Span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Narrow value;
    std::memcpy(&value, from + i * sizeof(value), sizeof(value));
    values[i] = ToFloat(value);
  }
}

}  // namespace

void WriteValues(absl::Span<const float> values, DType type, char* to) {
  if (values.empty()) return;
  if (type == DType::kBF16) return Round<Bfloat16, ToBfloat16>(values, to);
  if (type == DType::kF16) return Round<Float16, ToFloat16>(values, to);
  if (type == DType::kI8) {
    std::transform(values.begin(), values.end(), to,
                   [](float value) { return static_cast<char>(static_cast<int8_t>(value)); });
    return;
  }
  MGC_CHECK(type == DType::kF32);
  std::memcpy(to, values.data(), values.size() * sizeof(float));
}

void ReadValues(const char* from, DType type, absl::Span<float> values) {
  if (values.empty()) return;
  if (type == DType::kBF16) return Widen<Bfloat16>(from, values);
  if (type == DType::kF16) return Widen<Float16>(from, values);
  MGC_CHECK(type == DType::kF32);
  std::memcpy(values.data(), from, values.size() * sizeof(float));
}

}  // namespace mgc
