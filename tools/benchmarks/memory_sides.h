// The same work in memory of either kind that a rank's could be of: private, in huge pages, or an
// anonymous file that other processes can map, in the pages that the system has for those.

#ifndef MGC_TOOLS_BENCHMARKS_MEMORY_SIDES_H_
#define MGC_TOOLS_BENCHMARKS_MEMORY_SIDES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

enum class MemoryKind { kPrivate, kShared };
absl::string_view NameOf(MemoryKind kind);

// A step: f32 products of 1024 x 768 by 768 x 3072, one for each of some layers with tensors of its
// own, as GPT-2's `up` on 4 sequences of 256 tokens.
absl::StatusOr<std::unique_ptr<BenchSide>> ProductsIn(MemoryKind kind, int workers);
// A step: copies of 64 MiB within the memory.
absl::StatusOr<std::unique_ptr<BenchSide>> CopiesIn(MemoryKind kind, int workers);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_MEMORY_SIDES_H_
