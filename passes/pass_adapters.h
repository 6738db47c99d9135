// The passes that are more than a function from a graph to a graph, with the one signature of the
// table in passes/compile.cc. Each takes the form of the level that the table names.

#ifndef MGC_PASSES_PASS_ADAPTERS_H_
#define MGC_PASSES_PASS_ADAPTERS_H_

#include "absl/status/statusor.h"
#include "passes/pass.h"

namespace mgc {

// The whole step from the model, and beside it the forward-only counterpart.
absl::StatusOr<PassForm> RunDifferentiate(PassForm form, const PassContext& context);
// By the context's strategy on the mesh of the configuration. InvalidArgument for requests that
// came to nothing (passes/graph/shard/idle_requests.h), unless they may.
absl::StatusOr<PassForm> RunShard(PassForm form, const PassContext& context);
// Where the context's compute type is f16. InvalidArgument: scale_loss_c1.
absl::StatusOr<PassForm> RunScaleLoss(PassForm form, const PassContext& context);
// narrow_sums_c1, InvalidArgument: no gradient is summed over ranks, and they should be in a narrow
// type.
absl::StatusOr<PassForm> RunNarrowSums(PassForm form, const PassContext& context);
// recompute_c1, InvalidArgument: nothing is computed again, and something should be.
absl::StatusOr<PassForm> RunRecompute(PassForm form, const PassContext& context);
// split_products_c1, InvalidArgument: no product is cut, and some should be.
absl::StatusOr<PassForm> RunSplitProducts(PassForm form, const PassContext& context);
// Without an evaluation graph the plan evaluates nothing.
absl::StatusOr<PassForm> RunStage(PassForm form, const PassContext& context);
absl::StatusOr<PassForm> RunSchedule(PassForm form, const PassContext& context);
absl::StatusOr<PassForm> RunOrder(PassForm form, const PassContext& context);
absl::StatusOr<PassForm> RunAllocate(PassForm form, const PassContext& context);

}  // namespace mgc

#endif  // MGC_PASSES_PASS_ADAPTERS_H_
