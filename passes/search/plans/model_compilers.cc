#include "passes/search/plans/model_compilers.h"

#include <algorithm>
#include <tuple>

#include "graph/base/status.h"
#include "passes/config/check_config.h"

namespace mgc {
namespace {

// Beyond so many nodes of all graphs together the oldest are forgotten: about 250 MB.
constexpr int64_t kMostNodes = 190000;

}  // namespace

// Forgets what kept layers are all that was asked of, then what was asked for the longest ago.
void ModelCompilers::MakeRoom() {
  while (nodes_ > kMostNodes) {
    const auto oldest =
        std::min_element(models_.begin(), models_.end(), [](const auto& a, const auto& b) {
          const auto order = [](const Made& made) {
            return std::make_tuple(made.nodes == 0, made.whole, made.asked);
          };
          return order(a.second) < order(b.second);
        });
    if (oldest == models_.end() || oldest->second.nodes == 0) return;
    nodes_ -= oldest->second.nodes;
    oldest->second.nodes = 0;
    oldest->second.model = ModelCompiler::OfKeptLayers(*oldest->second.model);
  }
}

absl::StatusOr<std::shared_ptr<ModelCompiler>> ModelCompilers::For(const ParallelConfig& config,
                                                                   bool kept) {
  const int64_t samples = config.micro_batch_size * std::max<int64_t>(DataParallelSize(config), 1);
  Made& made = models_[{samples, config.compute_type}];
  made.asked = ++calls_;
  made.whole = made.whole || !kept;
  const bool is_whole = made.nodes > 0;
  if (made.model != nullptr && (is_whole || kept)) return made.model;
  MGC_ASSIGN_OR_RETURN(Graph graph, build_(config));
  const int64_t nodes = std::max<int64_t>(static_cast<int64_t>(graph.nodes().size()), 1);
  nodes_ += nodes;
  MakeRoom();
  made.nodes = nodes;
  made.model = std::make_shared<ModelCompiler>(std::move(graph), dims_);
  return made.model;
}

}  // namespace mgc
