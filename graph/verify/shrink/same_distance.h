// A distance between two places that is the same wherever it is met.

#ifndef MGC_GRAPH_VERIFY_SHRINK_SAME_DISTANCE_H_
#define MGC_GRAPH_VERIFY_SHRINK_SAME_DISTANCE_H_

#include <cstdint>

#include "absl/types/optional.h"

namespace mgc {

class SameDistance {
 public:
  // Whether it is `distance` here as it was before.
  bool Is(int64_t distance) {
    if (!known_.has_value()) known_ = distance;
    return *known_ == distance;
  }
  bool Differs(const SameDistance& other) const {
    return known_.has_value() && other.known_.has_value() && *known_ != *other.known_;
  }

 private:
  absl::optional<int64_t> known_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_SAME_DISTANCE_H_
