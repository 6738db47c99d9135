// Which tensors there are, and of which shapes, where two must have the same.

#ifndef MGC_RUNTIME_STATE_TENSOR_SHAPES_H_
#define MGC_RUNTIME_STATE_TENSOR_SHAPES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

using TensorShapes = std::map<std::string, std::vector<int64_t>>;  // by name

std::string ShapeText(absl::Span<const int64_t> shape);  // `[300,64]`

// FailedPrecondition names every tensor that only one of both has, or has in another shape. `path`:
// where `there` are; `whose`: who wants the others, `the plan`.
absl::Status CheckSameTensors(const TensorShapes& there, const std::string& path,
                              const TensorShapes& wanted, absl::string_view whose);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_TENSOR_SHAPES_H_
