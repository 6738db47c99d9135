#include "runtime/weights/low_rank.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/types/tensor_type.h"
#include "runtime/state/tensor_shapes.h"

namespace mgc {
namespace {

absl::StatusOr<std::vector<float>> ReadWhole(const PositionalFile& file,
                                             const StoredTensor& stored) {
  std::vector<float> values(static_cast<size_t>(NumElements(stored.shape)));
  MGC_RETURN_IF_ERROR(file.Read(
      stored.offset, {reinterpret_cast<char*>(values.data()), values.size() * sizeof(float)}));
  MGC_RETURN_IF_ERROR(CheckHash(file.path(), stored, HashOfRun(0, values)));
  return values;
}

}  // namespace

absl::StatusOr<LowRankProduct> LowRankProduct::Read(const PositionalFile& file,
                                                    const StoredTensor& a, const StoredTensor& b,
                                                    double scale) {
  if (a.shape.empty() || b.shape.empty() || a.shape.back() != b.shape.front()) {
    return absl::FailedPreconditionError(absl::StrCat(EscapeBytes(a.name), " ", ShapeText(a.shape),
                                                      " and ", EscapeBytes(b.name), " ",
                                                      ShapeText(b.shape), " have no product"));
  }
  const int64_t rank = b.shape.front();
  LowRankProduct product(rank, NumElements(b.shape) / rank, scale);
  MGC_ASSIGN_OR_RETURN(product.a_, ReadWhole(file, a));
  MGC_ASSIGN_OR_RETURN(product.b_, ReadWhole(file, b));
  return product;
}

void LowRankProduct::AddTo(int64_t begin, absl::Span<float> values) const {
  std::vector<double> sums;
  for (size_t done = 0; done < values.size();) {
    const int64_t at = begin + static_cast<int64_t>(done);
    const auto column = static_cast<size_t>(at % columns_);
    const size_t count = std::min(values.size() - done, static_cast<size_t>(columns_) - column);
    sums.assign(count, 0);
    for (int64_t k = 0; k < rank_; ++k) {
      const double factor = a_[static_cast<size_t>(at / columns_ * rank_ + k)];
      const float* row = &b_[static_cast<size_t>(k * columns_) + column];
      for (size_t i = 0; i < count; ++i) sums[i] += factor * row[i];
    }
    for (size_t i = 0; i < count; ++i) {
      float& value = values[done + i];
      value = static_cast<float>(value + scale_ * sums[i]);
    }
    done += count;
  }
}

}  // namespace mgc
