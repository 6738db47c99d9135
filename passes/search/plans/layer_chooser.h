// What a rank of a pipeline may hold of a model whose layers are alike, and which cut of the layers
// takes a step the least time (passes/search/plans/choose_layers.h).

#ifndef MGC_PASSES_SEARCH_PLANS_LAYER_CHOOSER_H_
#define MGC_PASSES_SEARCH_PLANS_LAYER_CHOOSER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/search/plans/chunk_layers.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// How many layers of a rank have which kind of recomputation.
using KindCounts = std::array<int64_t, kNumRecomputeKinds>;

struct RankChoice {
  bool fits = false;
  int64_t ns = 0;  // of a micro-batch
  KindCounts counts = {};
};

class LayerChooser {
 public:
  // All outlive it. `spread` is of even stages and of the profile with the least recomputation;
  // `memory`: bytes of a rank.
  LayerChooser(const PlanSpread& spread, const ProfilesByKind& profiles, int64_t memory);

  // Layers of every rank, as even as they are placed.
  std::vector<int64_t> EvenCounts() const;
  // The layers of every rank under which a step takes least; empty where no cut fits.
  std::vector<int64_t> BestCounts();
  // Layers of every stage, of ranks that have so many.
  std::vector<int64_t> OverStages(const std::vector<int64_t>& counts) const {
    return LayersOfChunks(counts, spread_.checked.vp, Costs());
  }
  // The least time of `layers` on a rank: as few are computed again as memory allows.
  RankChoice Choose(size_t rank, int64_t layers) const;
  // By how much longer a step takes, with the layers of BestCounts, than even stages do that
  // compute nothing again.
  int64_t RecomputedNs();

 private:
  // What one layer costs under one kind of recomputation.
  struct LayerCost {
    int64_t ns = 0;
    int64_t frame_bytes = 0;
    int64_t block_bytes = 0;
  };
  // What a rank has beside its layers, and how many frames of each it holds at once.
  struct RankCost {
    int64_t ns = 0;
    int64_t bytes = 0;
    int64_t frames = 0;
  };

  size_t MiddleLayer() const;
  bool HasEmbedding(size_t rank) const { return rank == 0 && spread_.profile.has_embedding; }
  bool HasHead(size_t rank) const { return rank + 1 == ranks_ && spread_.profile.has_head; }
  StageCosts Costs() const;
  // One for every chunk that does not hold an end.
  int64_t LeastLayers(size_t rank) const {
    return spread_.checked.vp - (HasEmbedding(rank) ? 1 : 0) - (HasHead(rank) ? 1 : 0);
  }
  // The kind with as little recomputation as is allowed.
  size_t Least() const { return allowed_[0] ? 0 : allowed_[1] ? 1 : 2; }
  // Frames of one layer that a rank holds at once, on average over its chunks.
  int64_t Frames(size_t rank) const;
  // Of a rank without its layers.
  int64_t OwnBytes(size_t rank) const;
  int64_t OwnNs(size_t rank) const;

  // The least number of layers to compute again whole beside which others of that frame fit; all
  // where none does.
  int64_t FullBeside(size_t rank, int64_t layers, int64_t others_frame) const;
  bool KeepsOthers(const RankChoice& choice) const {
    return choice.fits && allowed_[0] && choice.counts[1] == 0;
  }
  // With `first` to `last` layers computed again whole.
  RankChoice ChooseAmong(size_t rank, int64_t layers, int64_t first, int64_t last) const;
  // With `full` of them, of the others as few selectively as memory allows.
  RankChoice ChooseBeside(size_t rank, int64_t layers, int64_t full) const;
  // Choose, once for each.
  RankChoice At(size_t rank, int64_t layers);

  bool Fits(const std::vector<int64_t>& counts);
  int64_t StepOf(const std::vector<int64_t>& counts);
  // As many layers as a step of `limit` leaves room for, rank by rank; empty where some are left.
  std::vector<int64_t> CountsWithin(int64_t limit);

  const PlanSpread& spread_;
  const int64_t memory_;
  const size_t ranks_;
  const int64_t micro_batches_;
  int64_t num_layers_ = 0;
  std::vector<RankCost> own_;  // by rank
  std::array<LayerCost, kNumRecomputeKinds> layer_;
  std::array<bool, kNumRecomputeKinds> allowed_ = {};
  absl::flat_hash_map<std::pair<size_t, int64_t>, RankChoice> table_;  // by rank and layers
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_LAYER_CHOOSER_H_
