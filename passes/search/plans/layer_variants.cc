#include "passes/search/plans/layer_variants.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "passes/config/check_config.h"
#include "passes/search/plans/choose_layers.h"

namespace mgc {
namespace {

constexpr size_t kMostCuts = 256;
constexpr int64_t kMostLayers = 4;

// Layers of every stage in every way.
class Cutter {
 public:
  Cutter(const ModelDims& dims, size_t stages) : dims_(dims), stages_(stages) {}

  // Nothing where there are too many.
  std::vector<std::vector<int64_t>> Run() {
    Add(dims_.layers);
    return std::move(ways_);
  }

 private:
  int64_t Least(size_t stage) const {
    const bool holds_end =
        (stage == 0 && dims_.places.embedding) || (stage + 1 == stages_ && dims_.places.head);
    return holds_end ? 0 : 1;
  }

  // Gives `left` layers to the stages that have none yet.
  void Add(int64_t left) {
    if (too_many_) return;
    const size_t stage = counts_.size();
    if (stage + 1 == stages_) {
      if (left < Least(stage)) return;
      counts_.push_back(left);
      ways_.push_back(counts_);
      counts_.pop_back();
      too_many_ = ways_.size() > kMostCuts;
      if (too_many_) ways_.clear();
      return;
    }
    int64_t needed = 0;  // by the stages behind
    for (size_t s = stage + 1; s < stages_; ++s) needed += Least(s);
    for (int64_t n = Least(stage); n <= left - needed && !too_many_; ++n) {
      counts_.push_back(n);
      Add(left - n);
      counts_.pop_back();
    }
  }

  const ModelDims& dims_;
  const size_t stages_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<int64_t>> ways_;
  bool too_many_ = false;
};

}  // namespace

std::vector<ParallelConfig> CutsOf(const ParallelConfig& config, const ModelDims& dims,
                                   bool free_cuts) {
  if (!free_cuts) return {config};
  const CheckedConfig checked = CheckConfig(config, dims);
  std::vector<int64_t> even;
  for (const StageContent& stage : checked.placement.stages) even.push_back(stage.num_layers);
  const std::vector<std::vector<int64_t>> ways = Cutter(dims, even.size()).Run();
  if (ways.empty()) return {};
  std::vector<ParallelConfig> cuts = {config};
  for (const std::vector<int64_t>& counts : ways) {
    if (counts == even) continue;
    cuts.push_back(config);
    cuts.back().layout.layout = LayoutText(counts);
    if (!CheckConfig(cuts.back(), dims).violations.empty()) cuts.pop_back();
  }
  return cuts;
}

bool HasFewRecomputations(const ModelDims& dims) {
  return dims.layers > 0 && dims.layers <= kMostLayers;
}

std::vector<ParallelConfig> MoreRecomputedThan(const ParallelConfig& config,
                                               const ModelDims& dims) {
  std::vector<RecomputeKind> kinds;
  for (int64_t layer = 0; layer < dims.layers; ++layer) kinds.push_back(config.recompute.Of(layer));
  std::vector<ParallelConfig> more;
  for (RecomputeKind& kind : kinds) {
    if (kind == RecomputeKind::kFull) continue;
    const RecomputeKind before = kind;
    kind = before == RecomputeKind::kNone ? RecomputeKind::kSelective : RecomputeKind::kFull;
    more.push_back(config);
    more.back().recompute = SimplestOf(kinds);
    kind = before;
  }
  return more;
}

}  // namespace mgc
