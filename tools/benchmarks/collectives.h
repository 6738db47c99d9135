// Collectives of two ranks in one process, alone, and copies of as many bytes: what memory allows.

#ifndef MGC_TOOLS_BENCHMARKS_COLLECTIVES_H_
#define MGC_TOOLS_BENCHMARKS_COLLECTIVES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/types/tensor_type.h"
#include "runtime/load/exchange.h"
#include "runtime/run/workers.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

// A collective of a value of `elements` elements, as the runtime runs it for both ranks at once.
class CollectiveRunner : public BenchSide {
 public:
  // `op`: all_reduce, reduce_scatter or all_gather, over a mesh of two ranks. Every piece is cut
  // among `workers` threads. Errors: Internal for an op that leads from no such sharding to
  // another.
  static absl::StatusOr<std::unique_ptr<BenchSide>> Create(absl::string_view op, int64_t elements,
                                                           DType type, int workers);

  absl::StatusOr<StepTime> Step() override;
  int64_t bytes() const { return bytes_; }  // that a step reads and writes

 private:
  CollectiveRunner(Exchange exchange, int workers)
      : exchange_(std::move(exchange)), workers_(workers, workers) {}

  const Exchange exchange_;
  Workers workers_;
  std::vector<std::vector<char>> inputs_, outputs_;  // by rank; no outputs: in place
  int64_t bytes_ = 0;
};

// Copies as many bytes as the collective moves: half as many are read, half as many written.
class CopyRunner : public BenchSide {
 public:
  static absl::StatusOr<std::unique_ptr<BenchSide>> Create(absl::string_view op, int64_t elements,
                                                           DType type, int workers);

  absl::StatusOr<StepTime> Step() override;

 private:
  CopyRunner(int64_t bytes, int workers)
      : workers_(workers, workers),
        from_(static_cast<size_t>(bytes), 1),
        to_(static_cast<size_t>(bytes), 2) {}

  Workers workers_;
  const std::vector<char> from_;
  std::vector<char> to_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_COLLECTIVES_H_
