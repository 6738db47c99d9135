// What a rank of a pipeline may hold of a model's layers, and which cut of the layers takes a step
// the least time (passes/search/plans/choose_layers.h).
//
// Of layers that are alike only their number counts, and what is computed again follows from three
// numbers. Of others it is chosen layer by layer (passes/search/plans/choose_kinds.h), and a rank
// has layers that follow each other.

#ifndef MGC_PASSES_SEARCH_PLANS_LAYER_CHOOSER_H_
#define MGC_PASSES_SEARCH_PLANS_LAYER_CHOOSER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "passes/search/plans/choose_kinds.h"
#include "passes/search/plans/chunk_layers.h"
#include "passes/search/plans/model_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// How many layers of a rank have which kind of recomputation.
using KindCounts = std::array<int64_t, kNumRecomputeKinds>;

struct RankChoice {
  bool fits = false;
  int64_t ns = 0;          // of a micro-batch
  KindCounts counts = {};  // of layers that are alike
};

class LayerChooser {
 public:
  // All outlive it. `spread` is of even stages and of the profile with the least recomputation;
  // `memory`: bytes of a rank.
  LayerChooser(const PlanSpread& spread, const ProfilesByKind& profiles, int64_t memory);

  // Whether the profile says of each layer what it costs.
  bool knows_layers() const { return num_profiled() > 0 && (are_alike_ || !by_layer_.empty()); }
  // Whether BestCounts can say more than that stages are even: several chunks of a rank do not
  // follow each other.
  bool can_cut() const { return are_alike_ || spread_.checked.vp == 1; }
  // The layers of every rank under which a step takes least, up to one part in `exact`; empty where
  // no cut fits.
  std::vector<int64_t> BestCounts(int64_t exact = 4096);
  // Layers of every stage, of ranks that have so many.
  std::vector<int64_t> OverStages(const std::vector<int64_t>& counts) const {
    return LayersOfChunks(counts, spread_.checked.vp, Costs());
  }
  // What a rank computes again of `layers`, which ascend, by layer: as little as memory allows.
  // Empty where they do not fit.
  absl::optional<std::vector<RecomputeKind>> KindsOf(size_t rank,
                                                     const std::vector<int64_t>& layers) const;
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

  bool AreAlike() const;
  // Of layers that are not.
  void ListLayers(const ProfilesByKind& profiles);
  // Of all of the profile's layers, the embedding among them.
  size_t FirstLayer() const { return spread_.profile.has_embedding ? 1 : 0; }
  // Of a model that names no layers it is one.
  size_t num_profiled() const {
    return spread_.profile.layers.size() - FirstLayer() - (spread_.profile.has_head ? 1 : 0);
  }
  // Layers of every rank, as even as they are placed.
  std::vector<int64_t> EvenCounts() const;
  bool HasEmbedding(size_t rank) const { return rank == 0 && spread_.profile.has_embedding; }
  bool HasHead(size_t rank) const { return rank + 1 == ranks_ && spread_.profile.has_head; }
  StageCosts Costs() const;
  // One for every chunk that does not hold an end.
  int64_t LeastLayers(size_t rank) const {
    const int64_t ends = (HasEmbedding(rank) ? 1 : 0) + (HasHead(rank) ? 1 : 0);
    return std::max<int64_t>(spread_.checked.vp - ends, 0);
  }
  // The kind with as little recomputation as is allowed.
  size_t Least() const { return allowed_[0] ? 0 : allowed_[1] ? 1 : 2; }
  // Frames of one layer that a rank holds at once, on average over its chunks.
  int64_t Frames(size_t rank) const;
  // Of a rank without its layers.
  int64_t OwnBytes(size_t rank) const;
  int64_t OwnNs(size_t rank) const;

  // The least time of layers that follow each other, `first` the first of them.
  RankChoice Choose(size_t rank, int64_t first, int64_t layers) const;
  // Of so many that are alike.
  RankChoice ChooseAlike(size_t rank, int64_t layers) const;
  KindsChoice ChooseByLayer(size_t rank, const std::vector<int64_t>& layers) const;
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
  RankChoice At(size_t rank, int64_t first, int64_t layers);

  // Of layers that follow each other, where as little as is allowed is computed again.
  int64_t LeastNs(int64_t first, int64_t layers) const;
  bool Fits(const std::vector<int64_t>& counts);
  // Of a micro-batch, on a rank that has these layers.
  using NsOfRank = absl::FunctionRef<int64_t(size_t rank, int64_t first, int64_t layers)>;
  int64_t StepOf(const std::vector<int64_t>& counts, NsOfRank ns_of) const;
  int64_t StepOf(const std::vector<int64_t>& counts);  // as it is chosen
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
  bool are_alike_ = false;
  std::vector<KindCosts> by_layer_;     // of layers that are not alike
  std::vector<int64_t> blocks_before_;  // likewise, bytes of the blocks of layers before each
  std::vector<int64_t> ns_before_;      // likewise, their time with the least recomputation
  absl::flat_hash_map<std::tuple<size_t, int64_t, int64_t>, RankChoice> table_;  // At's arguments
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_LAYER_CHOOSER_H_
