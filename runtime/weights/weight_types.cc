#include "runtime/weights/weight_types.h"

#include "graph/types/tensor_type.h"
#include "runtime/state/narrow_values.h"
#include "runtime/state/tensor_file.h"

namespace mgc {
namespace {

DType ElementOf(SafetensorsType type) {
  return type == SafetensorsType::kBF16  ? DType::kBF16
         : type == SafetensorsType::kF16 ? DType::kF16
                                         : DType::kF32;
}

}  // namespace

bool IsOfWeights(SafetensorsType type) {
  return type == SafetensorsType::kF32 || type == SafetensorsType::kBF16 ||
         type == SafetensorsType::kF16;
}

int64_t BytesOf(SafetensorsType type) { return SizeOf(ElementOf(type)); }

std::string Encode(absl::Span<const float> values, SafetensorsType type) {
  std::string bytes(values.size() * static_cast<size_t>(BytesOf(type)), '\0');
  WriteValues(values, ElementOf(type), &bytes[0]);
  return bytes;
}

void Decode(absl::string_view bytes, SafetensorsType type, absl::Span<float> values) {
  ReadValues(bytes.data(), ElementOf(type), values);
}

absl::Status CheckFinite(absl::Span<const float> values, const std::string& what) {
  return AllFinite(values) ? absl::OkStatus() : absl::OutOfRangeError(what);
}

}  // namespace mgc
