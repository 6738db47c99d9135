// Values of weights in the types that files have them in.

#ifndef MGC_RUNTIME_WEIGHTS_WEIGHT_TYPES_H_
#define MGC_RUNTIME_WEIGHTS_WEIGHT_TYPES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/data/safetensors.h"

namespace mgc {

// F32, BF16, F16; what follows is of these.
bool IsOfWeights(SafetensorsType type);

int64_t BytesOf(SafetensorsType type);

// Each value rounded once, to the nearest.
std::string Encode(absl::Span<const float> values, SafetensorsType type);

// As many values as `bytes` hold, without alignment.
void Decode(absl::string_view bytes, SafetensorsType type, absl::Span<float> values);

// OutOfRange, with this message, unless all are finite.
absl::Status CheckFinite(absl::Span<const float> values, const std::string& what);

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_WEIGHT_TYPES_H_
