#include "runtime/weights/weight_types.h"

#include <cstring>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "runtime/state/tensor_file.h"

namespace mgc {
namespace {

template <class Narrow, Narrow (*kRound)(float)>
std::string Rounded(absl::Span<const float> values) {
  std::string bytes(values.size() * sizeof(Narrow), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const Narrow value = kRound(values[i]);
    std::memcpy(&bytes[i * sizeof(value)], &value, sizeof(value));
  }
  return bytes;
}

template <class Narrow>
void Widen(absl::string_view bytes, absl::Span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Narrow value;
    std::memcpy(&value, &bytes[i * sizeof(value)], sizeof(value));
    values[i] = ToFloat(value);
  }
}

}  // namespace

bool IsOfWeights(SafetensorsType type) {
  return type == SafetensorsType::kF32 || type == SafetensorsType::kBF16 ||
         type == SafetensorsType::kF16;
}

int64_t BytesOf(SafetensorsType type) { return type == SafetensorsType::kF32 ? 4 : 2; }

std::string Encode(absl::Span<const float> values, SafetensorsType type) {
  if (type == SafetensorsType::kBF16) return Rounded<Bfloat16, ToBfloat16>(values);
  if (type == SafetensorsType::kF16) return Rounded<Float16, ToFloat16>(values);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

void Decode(absl::string_view bytes, SafetensorsType type, absl::Span<float> values) {
  if (type == SafetensorsType::kBF16) return Widen<Bfloat16>(bytes, values);
  if (type == SafetensorsType::kF16) return Widen<Float16>(bytes, values);
  std::memcpy(values.data(), bytes.data(), bytes.size());
}

absl::Status CheckFinite(absl::Span<const float> values, const std::string& what) {
  return AllFinite(values) ? absl::OkStatus() : absl::OutOfRangeError(what);
}

}  // namespace mgc
