// How a kernel uses more than one core: it splits its output over a Parallel. A kernel must give
// the same bits for every width and every split, so it never splits a sum.
#ifndef MGC_KERNELS_PARALLEL_H_
#define MGC_KERNELS_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace mgc {

class Parallel {
 public:
  virtual ~Parallel() = default;

  // The most threads that may work on one call at the same time, the caller included; at least 1.
  virtual int width() const = 0;

  // Calls `body(begin, end)` for disjoint ranges that cover [0, n), perhaps on several threads at
  // once, and returns when all are done. Ranges begin at multiples of `grain` (>= 1), the least
  // worth a hand-over. `body` may call For itself.
  virtual void For(int64_t n, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body) = 0;
};

// Everything on the calling thread.
class SerialParallel : public Parallel {
 public:
  int width() const override { return 1; }
  void For(int64_t n, int64_t grain,
           absl::FunctionRef<void(int64_t begin, int64_t end)> body) override;
};

// Calls `body(task, slot)` once for every task in [0, tasks), in no fixed order. `slot` <
// parallel.width() is not shared by two calls at the same time: it names the caller's scratch.
void ForEachTask(Parallel& parallel, int64_t tasks,
                 absl::FunctionRef<void(int64_t task, int slot)> body);

}  // namespace mgc

#endif  // MGC_KERNELS_PARALLEL_H_
