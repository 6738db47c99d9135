#include "graph/tensor_type.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

struct DTypeInfo {
  DType dtype;
  absl::string_view name;
  int64_t size;
};
constexpr DTypeInfo kDTypes[] = {
    {DType::kF32, "f32", 4}, {DType::kF64, "f64", 8}, {DType::kI64, "i64", 8}};

}  // namespace

int64_t SizeOf(DType dtype) { return kDTypes[static_cast<int>(dtype)].size; }

absl::string_view NameOf(DType dtype) { return kDTypes[static_cast<int>(dtype)].name; }

bool ParseDType(absl::string_view name, DType* dtype) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) {
      *dtype = info.dtype;
      return true;
    }
  }
  return false;
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

}  // namespace mgc
