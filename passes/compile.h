// The compiler: a logical graph and a configuration in, a plan out. The order of passes and the
// reasons for it are in compile.cc.

#ifndef MGC_PASSES_COMPILE_H_
#define MGC_PASSES_COMPILE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/graph.h"
#include "graph/machine.h"
#include "graph/plan.h"
#include "passes/order.h"
#include "passes/parallel_config.h"

namespace mgc {

struct CompileOptions {
  ParallelConfig parallel;
  Machine machine;            // whose costs order the plan
  bool limit_memory = false;  // refuse a plan that needs more than machine.memory
  PlanOptions flags;          // written into the plan
  // Called after every pass on the training graph (graph passes only), in order. Returning false
  // ends the compilation with a Cancelled error.
  std::function<bool(absl::string_view pass, const Graph& graph)> after_pass;
  // Receives the simulated step with its spans when set.
  SimulatedStep* simulated = nullptr;
};

// Errors: InvalidArgument with one line per violated rule for a configuration that cannot be
// (passes/check_config.h, shard, memory), or for a graph that cannot be trained.
absl::StatusOr<Plan> Compile(const Graph& logical, const ModelDims& dims,
                             const CompileOptions& options);

// Names of the graph passes, in order, as after_pass gives them.
absl::Span<const absl::string_view> GraphPassNames();

}  // namespace mgc

#endif  // MGC_PASSES_COMPILE_H_
