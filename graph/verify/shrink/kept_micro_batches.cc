#include "graph/verify/shrink/kept_micro_batches.h"

namespace mgc {

std::vector<int64_t> KeptMicroBatches(int64_t num_micro_batches) {
  std::vector<int64_t> kept;
  for (int64_t m : {int64_t{0}, int64_t{1}, num_micro_batches - 1}) {
    if (m < num_micro_batches && (kept.empty() || kept.back() < m)) kept.push_back(m);
  }
  return kept;
}

}  // namespace mgc
