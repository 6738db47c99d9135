// Products of narrow parameters, added to a wide one piece by piece.

#ifndef MGC_RUNTIME_WEIGHTS_LOW_RANK_H_
#define MGC_RUNTIME_WEIGHTS_LOW_RANK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/base/positional_file.h"
#include "runtime/state/tensor_file.h"

namespace mgc {

// scale * a b as a tensor of [in, out], of which no element is there until it is asked for.
class LowRankProduct {
 public:
  // Reads `a` [in..., rank] and `b` [rank, out...] out of a checkpoint's file. FailedPrecondition
  // where they have no rank in common, DataLoss where one is not what was written.
  static absl::StatusOr<LowRankProduct> Read(const PositionalFile& file, const StoredTensor& a,
                                             const StoredTensor& b, double scale);

  int64_t elements() const { return static_cast<int64_t>(a_.size()) / rank_ * columns_; }

  // Adds elements [begin, begin + values.size()) to `values`. Each sum is taken in f64, by
  // ascending rank, and rounded once.
  void AddTo(int64_t begin, absl::Span<float> values) const;

 private:
  LowRankProduct(int64_t rank, int64_t columns, double scale)
      : rank_(rank), columns_(columns), scale_(scale) {}

  int64_t rank_;
  int64_t columns_;
  double scale_;
  std::vector<float> a_, b_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_LOW_RANK_H_
