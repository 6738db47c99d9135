#include "graph/types/tensor_type.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr DType kDTypes[] = {DType::kF32,  DType::kF64, DType::kI64,
                             DType::kBF16, DType::kF16, DType::kI8};

}  // namespace

int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kI8:
      return 1;
  }
  return 0;
}

absl::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI64:
      return "i64";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kI8:
      return "i8";
  }
  return "?";
}

bool ParseDType(absl::string_view name, DType* dtype) {
  for (DType known : kDTypes) {
    if (NameOf(known) == name) {
      *dtype = known;
      return true;
    }
  }
  return false;
}

DType WideOf(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 ? DType::kF32 : dtype;
}

int64_t TensorType::NumElements() const {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size;
  return count;
}

std::string TensorType::ToString() const {
  std::string text = absl::StrCat(NameOf(dtype), "[");
  for (size_t i = 0; i < dims.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", dims[i].name, dims[i].name.empty() ? "" : "=",
                    dims[i].size);
    if (dims[i].multiple != 1) absl::StrAppend(&text, "%", dims[i].multiple);
  }
  return text + "]";
}

int64_t NumElements(absl::Span<const int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

std::vector<int64_t> SizesOf(const TensorType& type) {
  std::vector<int64_t> sizes;
  sizes.reserve(type.dims.size());
  for (const Dim& dim : type.dims) sizes.push_back(dim.size);
  return sizes;
}

std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

}  // namespace mgc
