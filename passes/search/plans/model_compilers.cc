#include "passes/search/plans/model_compilers.h"

#include <algorithm>

#include "graph/base/status.h"
#include "passes/config/check_config.h"

namespace mgc {

absl::StatusOr<ModelCompiler*> ModelCompilers::For(const ParallelConfig& config) {
  const int64_t samples = config.micro_batch_size * std::max<int64_t>(DataParallelSize(config), 1);
  const auto known = models_.find({samples, config.compute_type});
  if (known != models_.end()) return known->second.get();
  MGC_ASSIGN_OR_RETURN(Graph graph, build_(config));
  auto model = std::make_unique<ModelCompiler>(std::move(graph), dims_);
  return models_.emplace(std::make_pair(samples, config.compute_type), std::move(model))
      .first->second.get();
}

}  // namespace mgc
