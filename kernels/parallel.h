// How a kernel uses more than one core: it splits its output over a Parallel. A kernel must give
// the same bits for every width and every split, so it never splits a sum; what it may depend on is
// the level of instructions.
#ifndef MGC_KERNELS_PARALLEL_H_
#define MGC_KERNELS_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "kernels/simd_level.h"

namespace mgc {

class Parallel {
 public:
  // `level`: whose instructions kernels use; at most the machine's best.
  explicit Parallel(SimdLevel level = BestSimdLevel()) : simd_level_(level) {}
  virtual ~Parallel() = default;

  SimdLevel simd_level() const { return simd_level_; }

  // The most threads that may work on one call at the same time, the caller included; at least 1.
  virtual int width() const = 0;

  // The threads that would work on a call made now, from 1 to width(). It may change at any moment:
  // it is for how finely to cut work, never for what is computed or where scratch lies.
  virtual int hands() const { return width(); }

  // Calls `body(begin, end)` for disjoint ranges that cover [0, n), perhaps on several threads at
  // once, and returns when all are done. Ranges begin at multiples of `grain` (>= 1), the least
  // worth a hand-over. `body` may call For itself.
  void For(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body);

  // The same for ranges that begin at multiples of `chunk` (>= 1), as short as the caller has
  // decided. `slot` < width() is not shared by two calls at the same time: it names scratch.
  virtual void ForChunks(int64_t n, int64_t chunk,
                         absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) = 0;

 private:
  const SimdLevel simd_level_;
};

// Everything on the calling thread.
class SerialParallel : public Parallel {
 public:
  using Parallel::Parallel;
  int width() const override { return 1; }
  void ForChunks(int64_t n, int64_t chunk,
                 absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) override;
};

// Calls `body(task, slot)` once for every task in [0, tasks), in no fixed order; `slot` as above.
void ForEachTask(Parallel& parallel, int64_t tasks,
                 absl::FunctionRef<void(int64_t task, int slot)> body);

}  // namespace mgc

#endif  // MGC_KERNELS_PARALLEL_H_
