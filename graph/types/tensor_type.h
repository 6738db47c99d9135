// The type of a value: element type and dims. Dims are *logical* at every level: their size is that
// of the whole tensor on a single device and their name says what they count (`batch`, `seq`,
// `embed`, `heads`, ...). What a rank holds of it follows from the value's sharding
// (graph/types/sharding.h), so that sizes stay expressions over logical dims and axis sizes.

#ifndef MGC_GRAPH_TYPES_TENSOR_TYPE_H_
#define MGC_GRAPH_TYPES_TENSOR_TYPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// `i8`: weights as whole numbers, each channel of which has a scale (passes/graph/quantize.h).
enum class DType : uint8_t { kF32, kF64, kI64, kBF16, kF16, kI8 };

int64_t SizeOf(DType dtype);            // bytes of one element
absl::string_view NameOf(DType dtype);  // `f32`
// True when `name` names a type, which is then stored in `dtype`.
bool ParseDType(absl::string_view name, DType* dtype);
// Whether its elements are numbers to compute with; those of i64 count and name things.
inline bool IsReal(DType dtype) { return dtype != DType::kI64; }
// The type in which sums of elements of `dtype` are kept: f32 of a narrower one, else itself.
DType WideOf(DType dtype);
// Whether it is narrower than the type in which its sums are kept: `bf16`, `f16`.
inline bool IsNarrow(DType dtype) { return WideOf(dtype) != dtype; }

struct Dim {
  int64_t size = 0;
  std::string name;      // logical name; empty for a dim no strategy may speak of
  int64_t multiple = 1;  // what a rank makes room for is rounded up to a multiple of this

  friend bool operator==(const Dim& a, const Dim& b) {
    return a.size == b.size && a.name == b.name && a.multiple == b.multiple;
  }
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
};

// The logical name of the dim that counts samples, the first dim of data inputs.
inline constexpr char kSampleDim[] = "batch";

struct TensorType {
  DType dtype = DType::kF32;
  std::vector<Dim> dims;

  int ndim() const { return static_cast<int>(dims.size()); }
  int64_t NumElements() const;
  std::string ToString() const;  // `f32[batch=8,16,vocab=257%128]`; a scalar is `f32[]`

  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.dtype == b.dtype && a.dims == b.dims;
  }
  friend bool operator!=(const TensorType& a, const TensorType& b) { return !(a == b); }
};

std::vector<int64_t> SizesOf(const TensorType& type);

// Product of sizes; 1 for none.
int64_t NumElements(absl::Span<const int64_t> sizes);

// Elements between neighbours along each dim of a dense tensor, the last dim fastest.
std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_TENSOR_TYPE_H_
