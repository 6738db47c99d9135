#include "runtime/data/sample_tensor.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/data/npy.h"
#include "runtime/data/safetensors.h"

namespace mgc {
namespace {

absl::StatusOr<SampleTensor> ReadFromSafetensors(const TensorPlace& place) {
  MGC_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(place.path));
  const auto found = file.entries().find(place.tensor);
  const bool real = found != file.entries().end() && found->second.type == SafetensorsType::kF32;
  SampleTensor tensor;
  if (real) {
    MGC_ASSIGN_OR_RETURN(tensor.values, file.Floats(place.tensor));
  } else if (found != file.entries().end() && found->second.type == SafetensorsType::kF64) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(place.path), ": tensor ", EscapeBytes(place.tensor),
                     " is F64, which would lose digits; write it as F32"));
  } else {
    MGC_ASSIGN_OR_RETURN(tensor.values, file.Integers(place.tensor));
  }
  tensor.shape = found->second.shape;
  return tensor;
}

absl::StatusOr<SampleTensor> ReadTensor(const TensorPlace& place) {
  if (!absl::EndsWith(place.path, ".npy")) return ReadFromSafetensors(place);
  MGC_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(place.path));
  return ParseNpy(bytes, place.path);
}

}  // namespace

absl::string_view SampleTensor::Sample(int64_t sample) const {
  return std::visit(
      [&](const auto& list) {
        const size_t bytes = list.size() / static_cast<size_t>(samples()) * sizeof(list[0]);
        return absl::string_view(reinterpret_cast<const char*>(list.data()),
                                 list.size() * sizeof(list[0]))
            .substr(static_cast<size_t>(sample) * bytes, bytes);
      },
      values);
}

std::string ToString(const SampleTensor& tensor) {
  TensorType type{tensor.dtype(), {}};
  for (int64_t size : tensor.shape)
    type.dims.push_back({size, type.dims.empty() ? "samples" : "", 1});
  return type.ToString();
}

absl::StatusOr<SampleTensor> ReadSampleTensor(const TensorPlace& place) {
  MGC_ASSIGN_OR_RETURN(SampleTensor tensor, ReadTensor(place));
  if (tensor.shape.empty() || tensor.shape[0] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(place.path),
                                                   " holds no sample: the first dim of its tensor "
                                                   "counts them, and it has ",
                                                   tensor.shape.empty() ? "none" : "size 0"));
  }
  return tensor;
}

}  // namespace mgc
