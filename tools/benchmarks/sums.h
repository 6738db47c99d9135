// All-reduces of f32 between two members, in place: as threads and as processes of one host.

#ifndef MGC_TOOLS_BENCHMARKS_SUMS_H_
#define MGC_TOOLS_BENCHMARKS_SUMS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

// A step of every side, also of mpi_sums.cc, is this many sums. Before each all members write their
// buffers anew, which the step's seconds leave out and its seconds of CPU do not.
int64_t SumsOfStep(int64_t bytes);

// Both members in this process.
absl::StatusOr<std::unique_ptr<BenchSide>> SumsOfThreads(int64_t bytes, int workers);
// Each in a process of its own, with one thread.
absl::StatusOr<std::unique_ptr<BenchSide>> SumsOfProcesses(int64_t bytes);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_SUMS_H_
