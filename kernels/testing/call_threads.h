// For tests: a Parallel without a pool. Each call starts its own threads and joins them, so that
// every range may run beside every other.
#ifndef MGC_KERNELS_TESTING_CALL_THREADS_H_
#define MGC_KERNELS_TESTING_CALL_THREADS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/parallel.h"

namespace mgc {

class CallThreads : public Parallel {
 public:
  explicit CallThreads(int width, SimdLevel level = BestSimdLevel())
      : Parallel(level), width_(width) {}

  int width() const override { return width_; }
  void ForChunks(int64_t n, int64_t chunk,
                 absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) override;

 private:
  const int width_;
};

}  // namespace mgc

#endif  // MGC_KERNELS_TESTING_CALL_THREADS_H_
