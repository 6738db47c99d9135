// The graph passes by name, for tools and tests that run one at a time (tools/mgc-opt, file tests).

#ifndef MGC_PASSES_PASS_TABLE_H_
#define MGC_PASSES_PASS_TABLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "passes/parallel_config.h"

namespace mgc {

struct PassOptions {
  ParallelConfig parallel;  // shard: sizes of the axes, sequence parallelism, ZeRO; recompute
  int64_t kv_heads = 1;     // shard: decides whether tp is split into sub-axes
};

struct PassEntry {
  absl::string_view name;
  absl::string_view doc;  // one sentence
  Level from;
  Level to;  // equal to `from` for passes that stay on any one level
  absl::StatusOr<Graph> (*run)(const Graph& graph, const PassOptions& options);
};

// In the order the compiler runs them (passes/compile.cc).
absl::Span<const PassEntry> GraphPasses();

// Checks the level of `graph`, runs the pass and says in errors which one it was. NotFound for an
// unknown name.
absl::StatusOr<Graph> RunPass(absl::string_view name, const Graph& graph,
                              const PassOptions& options);

}  // namespace mgc

#endif  // MGC_PASSES_PASS_TABLE_H_
