#include "passes/search/plans/model_compilers.h"

#include <algorithm>

#include "graph/base/status.h"
#include "passes/config/check_config.h"

namespace mgc {
namespace {

// Beyond so many nodes of all models together the oldest are forgotten: about 250 MB.
constexpr int64_t kMostNodes = 190000;

}  // namespace

void ModelCompilers::MakeRoom() {
  int64_t nodes = 0;
  for (const auto& [key, made] : models_) nodes += made.model->num_nodes();
  while (nodes > kMostNodes) {
    const auto oldest =
        std::min_element(models_.begin(), models_.end(), [](const auto& a, const auto& b) {
          const auto order = [](const Made& made) {
            return std::make_pair(made.model->num_nodes() == 0, made.asked);
          };
          return order(a.second) < order(b.second);
        });
    nodes -= oldest->second.model->num_nodes();
    models_.erase(oldest);
  }
}

absl::StatusOr<std::shared_ptr<ModelCompiler>> ModelCompilers::For(const ParallelConfig& config) {
  const int64_t samples = config.micro_batch_size * std::max<int64_t>(DataParallelSize(config), 1);
  const Key key = {samples, config.compute_type};
  MakeRoom();
  const auto known = models_.find(key);
  if (known != models_.end()) {
    known->second.asked = ++calls_;
    return known->second.model;
  }
  const auto again = [build = build_, config] { return build(config); };
  std::shared_ptr<ModelCompiler> model;
  for (auto made = models_.begin(); model == nullptr && made != models_.end(); ++made) {
    model = ModelCompiler::OfOtherSamples(*made->second.model, samples, again);
  }
  if (model == nullptr) {
    MGC_ASSIGN_OR_RETURN(Graph graph, again());
    model = std::make_shared<ModelCompiler>(std::move(graph), dims_, again);
  }
  models_[key] = {model, ++calls_};
  return model;
}

}  // namespace mgc
