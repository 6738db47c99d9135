// A tensor of samples: data of any shape for one input of a model, held whole in memory.

#ifndef MGC_RUNTIME_DATA_SAMPLE_TENSOR_H_
#define MGC_RUNTIME_DATA_SAMPLE_TENSOR_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// Row-major; the first dim counts samples. Holds as many values as the shape says.
struct SampleTensor {
  std::vector<int64_t> shape;  // at least one dim, and one sample
  std::variant<std::vector<float>, std::vector<int64_t>> values;

  DType dtype() const { return values.index() == 0 ? DType::kF32 : DType::kI64; }
  int64_t samples() const { return shape[0]; }
  // The bytes of a sample below samples().
  absl::string_view Sample(int64_t sample) const;
};

// `f32[samples=100,3,32,32]`.
std::string ToString(const SampleTensor& tensor);

// Where a tensor lies: an .npy file, or a .safetensors file and the tensor's name in it.
struct TensorPlace {
  std::string path;
  std::string tensor;  // of a .safetensors file
};

// Reads one. i32 is widened to i64, which changes no value; types other than f32, i32 and i64 are
// refused by their name. Errors of reading the file, and InvalidArgument for one that is no whole
// tensor with at least one sample (runtime/data/npy.h, runtime/data/safetensors.h).
absl::StatusOr<SampleTensor> ReadSampleTensor(const TensorPlace& place);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_SAMPLE_TENSOR_H_
