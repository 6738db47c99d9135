#include "passes/search/plans/choose_layers.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/plan/time/cost.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {
namespace {

// How often a choice that a bound finds too large is made again with less memory.
constexpr int kMostTries = 4;

size_t IndexOf(RecomputeKind kind) { return static_cast<size_t>(kind); }

// The one without recomputation, or with as little as is allowed.
const ModelProfile& LeastOf(const ProfilesByKind& profiles) {
  return **std::find_if(profiles.begin(), profiles.end(),
                        [](const ModelProfile* profile) { return profile != nullptr; });
}

// What one layer costs under one kind of recomputation.
struct LayerCost {
  int64_t ns = 0;
  int64_t frame_bytes = 0;
  int64_t block_bytes = 0;
};

// How many layers of a rank have which kind.
using KindCounts = std::array<int64_t, kNumRecomputeKinds>;

struct RankChoice {
  bool fits = false;
  int64_t ns = 0;  // of a micro-batch
  KindCounts counts = {};
};

// What a rank has beside its layers, and how many frames of each it holds at once.
struct RankCost {
  int64_t ns = 0;
  int64_t bytes = 0;
  int64_t frames = 0;
};

// Decides for models whose layers are alike.
class LayerChooser {
 public:
  // All outlive it. `spread` is of even stages and LeastOf(profiles).
  LayerChooser(const PlanSpread& spread, const ProfilesByKind& profiles, int64_t memory)
      : spread_(spread),
        checked_(spread.checked),
        memory_(memory),
        ranks_(spread.parts->ranks.size()),
        micro_batches_(spread.checked.micro_batches) {
    const size_t middle = MiddleLayer();
    for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
      if (profiles[k] == nullptr) continue;
      const LayerProfile& layer = profiles[k]->layers[middle];
      layer_[k] = {layer.forward_ns + layer.backward_ns, layer.frame_bytes,
                   spread.BlockBytes(layer)};
      allowed_[k] = true;
    }
    for (const StageContent& stage : checked_.placement.stages) num_layers_ += stage.num_layers;
    for (size_t c = 0; c < ranks_; ++c) own_.push_back({OwnNs(c), OwnBytes(c), Frames(c)});
  }

  // Layers of every rank, as even as they are placed.
  std::vector<int64_t> EvenCounts() const {
    std::vector<int64_t> counts(ranks_, 0);
    for (size_t s = 0; s < checked_.placement.stages.size(); ++s) {
      counts[RankOf(s)] += checked_.placement.stages[s].num_layers;
    }
    return counts;
  }

  // The layers of every rank under which a step takes least; empty where no cut fits.
  std::vector<int64_t> BestCounts() {
    FillTable();
    std::vector<int64_t> best = CountsWithin(kMaxNs);
    if (best.empty()) return best;
    int64_t low = 0;  // too little
    int64_t high = StepOf(best);
    while (low + 1 < high) {
      const int64_t limit = low + (high - low) / 2;
      std::vector<int64_t> counts = CountsWithin(limit);
      if (counts.empty()) {
        low = limit;
      } else {
        best = std::move(counts);
        high = std::min(limit, StepOf(best));
      }
    }
    const std::vector<int64_t> even = EvenCounts();
    return Fits(even) && StepOf(even) <= StepOf(best) ? even : best;
  }

  // The least time of `layers` on a rank: as few are computed again as memory allows.
  RankChoice Choose(size_t rank, int64_t layers) const {
    RankChoice best;
    for (int64_t full = 0; full <= (allowed_[2] ? layers : 0); ++full) {
      const RankChoice choice = ChooseBeside(rank, layers, full);
      if (choice.fits && (!best.fits || choice.ns < best.ns)) best = choice;
      // Computing one more again, where all others are kept, takes no less.
      const bool keeps_others = choice.fits && allowed_[0] && choice.counts[1] == 0;
      if (keeps_others && layer_[2].ns >= layer_[0].ns) break;
    }
    return best;
  }

 private:
  size_t MiddleLayer() const {
    const ModelProfile& profile = spread_.profile;
    const size_t first = profile.has_embedding ? 1 : 0;
    const size_t layers = profile.layers.size() - first - (profile.has_head ? 1 : 0);
    return first + layers / 2;
  }
  size_t RankOf(size_t stage) const {
    return static_cast<size_t>(checked_.placement.places[stage].rank_class);
  }
  bool HasEmbedding(size_t rank) const { return rank == 0 && spread_.profile.has_embedding; }
  bool HasHead(size_t rank) const { return rank + 1 == ranks_ && spread_.profile.has_head; }
  int64_t LeastLayers(size_t rank) const { return HasEmbedding(rank) || HasHead(rank) ? 0 : 1; }

  // Frames of one layer that a rank holds at once, on average over its chunks.
  int64_t Frames(size_t rank) const {
    return std::max<int64_t>(spread_.Begun(rank) / checked_.vp, 1);
  }

  // Of a rank without its layers.
  int64_t OwnBytes(size_t rank) const {
    const int64_t stream = spread_.profile.stream_bytes;
    const LayerProfile& all = spread_.parts->ranks[rank];
    int64_t bytes = 2 * stream + all.transient_bytes + all.workspace_bytes;
    if (rank > 0) bytes += spread_.Begun(rank) * stream;
    if (rank + 1 < ranks_) bytes -= Frames(rank) * stream;
    const std::vector<LayerProfile>& layers = spread_.profile.layers;
    const auto add = [&](const LayerProfile& end) {
      bytes += spread_.BlockBytes(end) + Frames(rank) * end.frame_bytes;
    };
    if (HasEmbedding(rank)) add(layers.front());
    if (HasHead(rank)) add(layers.back());
    return bytes;
  }
  int64_t OwnNs(size_t rank) const {
    int64_t ns = 0;
    const std::vector<LayerProfile>& layers = spread_.profile.layers;
    if (HasEmbedding(rank)) ns += layers.front().forward_ns + layers.front().backward_ns;
    if (HasHead(rank)) ns += layers.back().forward_ns + layers.back().backward_ns;
    return ns;
  }

  // With `full` layers computed again whole, of the others as few selectively as memory allows.
  RankChoice ChooseBeside(size_t rank, int64_t layers, int64_t full) const {
    const int64_t others = layers - full;
    const size_t least = allowed_[0] ? 0 : allowed_[1] ? 1 : 2;
    RankChoice choice;
    if (least == 2 && others > 0) return choice;
    int64_t selective = least == 1 ? others : 0;
    const RankCost& own = own_[rank];
    const auto bytes_of = [&](int64_t some) {
      const int64_t frames = full * layer_[2].frame_bytes + some * layer_[1].frame_bytes +
                             (others - some) * layer_[0].frame_bytes;
      return own.bytes + layers * layer_[least].block_bytes + own.frames * frames;
    };
    const int64_t over = bytes_of(selective) - memory_;
    const int64_t saved = own.frames * (layer_[0].frame_bytes - layer_[1].frame_bytes);
    if (over > 0 && least == 0 && allowed_[1] && saved > 0) {
      selective = std::min(others, (over + saved - 1) / saved);
    }
    choice.fits = bytes_of(selective) <= memory_;
    choice.counts = {others - selective, selective, full};
    choice.ns = own.ns;
    for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
      choice.ns = Later(choice.ns, Times(choice.counts[k], layer_[k].ns));
    }
    return choice;
  }

  void FillTable() {
    const auto ranks = static_cast<int64_t>(ranks_);
    const int64_t most = std::min(num_layers_, 2 * ((num_layers_ + ranks - 1) / ranks) + 2);
    for (size_t c = 0; c < ranks_; ++c) {
      std::vector<RankChoice> choices;
      for (int64_t n = 0; n <= most; ++n) choices.push_back(Choose(c, n));
      table_.push_back(std::move(choices));
    }
  }
  const RankChoice& At(size_t rank, int64_t layers) const {
    return table_[rank][static_cast<size_t>(layers)];
  }

  bool Fits(const std::vector<int64_t>& counts) const {
    for (size_t c = 0; c < counts.size(); ++c) {
      if (!At(c, counts[c]).fits) return false;
    }
    return true;
  }

  // Of the busiest rank: the first micro-batch's way to it and all of its own.
  int64_t StepOf(const std::vector<int64_t>& counts) const {
    int64_t step = 0;
    int64_t way = 0;
    for (size_t c = 0; c < counts.size(); ++c) {
      const int64_t ns = At(c, counts[c]).ns;
      step = std::max(step, Later(way, Times(micro_batches_, ns)));
      way = Later(way, ns);
    }
    return step;
  }

  // As many layers as a step of `limit` leaves room for, rank by rank; empty where some are left.
  std::vector<int64_t> CountsWithin(int64_t limit) const {
    std::vector<int64_t> counts;
    int64_t left = num_layers_;
    int64_t needed = 0;  // by the ranks behind
    for (size_t c = 0; c < ranks_; ++c) needed += LeastLayers(c);
    int64_t way = 0;
    for (size_t c = 0; c < ranks_; ++c) {
      needed -= LeastLayers(c);
      int64_t n = std::min(left - needed, static_cast<int64_t>(table_[c].size()) - 1);
      while (n >= LeastLayers(c) &&
             (!At(c, n).fits || Later(way, Times(micro_batches_, At(c, n).ns)) > limit)) {
        --n;
      }
      if (n < LeastLayers(c)) return {};
      counts.push_back(n);
      left -= n;
      way = Later(way, At(c, n).ns);
    }
    return left == 0 ? counts : std::vector<int64_t>();
  }

  const PlanSpread& spread_;
  const CheckedConfig& checked_;
  const int64_t memory_;
  const size_t ranks_;
  const int64_t micro_batches_;
  int64_t num_layers_ = 0;
  std::vector<RankCost> own_;  // by rank
  std::array<LayerCost, kNumRecomputeKinds> layer_;
  std::array<bool, kNumRecomputeKinds> allowed_ = {};
  std::vector<std::vector<RankChoice>> table_;  // by rank and number of layers
};

// The kinds of a rank's layers, in the order in which the model has them.
void AddKinds(const KindCounts& counts, std::vector<RecomputeKind>* kinds) {
  for (size_t k = kNumRecomputeKinds; k-- > 0;) {
    kinds->insert(kinds->end(), static_cast<size_t>(counts[k]), kRecomputeKinds[k]);
  }
}

// By rank and then chunk to the order of layers in the model.
std::vector<RecomputeKind> ByLayer(const LayerPlacement& placement,
                                   const std::vector<std::vector<RecomputeKind>>& by_rank) {
  std::vector<RecomputeKind> kinds;
  std::vector<size_t> taken(by_rank.size(), 0);
  for (size_t s = 0; s < placement.stages.size(); ++s) {
    const auto rank = static_cast<size_t>(placement.places[s].rank_class);
    for (int64_t l = 0; l < placement.stages[s].num_layers; ++l) {
      kinds.push_back(by_rank[rank][taken[rank]++]);
    }
  }
  return kinds;
}

// Whether what a layer costs is about the same in all.
bool AreAlike(const ModelProfile& profile) {
  const size_t first = profile.has_embedding ? 1 : 0;
  const size_t end = profile.layers.size() - (profile.has_head ? 1 : 0);
  if (first >= end) return false;
  const LayerProfile& one = profile.layers[first + (end - first) / 2];
  const auto near = [](int64_t a, int64_t b) { return std::abs(a - b) <= b / 16; };
  return std::all_of(
      profile.layers.begin() + static_cast<int64_t>(first),
      profile.layers.begin() + static_cast<int64_t>(end), [&](const LayerProfile& layer) {
        return near(layer.forward_ns + layer.backward_ns, one.forward_ns + one.backward_ns) &&
               near(layer.frame_bytes, one.frame_bytes) && near(layer.param_bytes, one.param_bytes);
      });
}

// The same kind in all layers: the first that fits.
absl::optional<LayerChoice> ChooseAlike(const ParallelConfig& config, const ModelDims& dims,
                                        const ProfilesByKind& profiles, const Machine& machine,
                                        int64_t memory) {
  const CheckedConfig checked = CheckConfig(config, dims);
  for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
    if (profiles[k] == nullptr) continue;
    const PlanBound bound = BoundPlan(PlanSpread(config, checked, *profiles[k]), machine);
    if (bound.peak_bytes > memory) continue;
    LayerChoice choice{config, bound};
    choice.config.recompute = kRecomputeKinds[k];
    return choice;
  }
  return absl::nullopt;
}

// Within what the chooser believes to be `memory`.
absl::optional<LayerChoice> ChooseWithin(const ParallelConfig& config, const ModelDims& dims,
                                         const ProfilesByKind& profiles, const Machine& machine,
                                         int64_t memory, bool free_cuts) {
  const CheckedConfig even = CheckConfig(config, dims);
  const PlanSpread spread(config, even, LeastOf(profiles));
  LayerChooser chooser(spread, profiles, memory);
  const std::vector<int64_t> even_counts = chooser.EvenCounts();
  const bool cuts = free_cuts && config.pp > 1 && even.vp == 1;
  const std::vector<int64_t> counts = cuts ? chooser.BestCounts() : even_counts;
  if (counts.empty()) return absl::nullopt;
  std::vector<std::vector<RecomputeKind>> kinds(counts.size());
  for (size_t c = 0; c < counts.size(); ++c) {
    const RankChoice choice = chooser.Choose(c, counts[c]);
    if (!choice.fits) return absl::nullopt;
    AddKinds(choice.counts, &kinds[c]);
  }
  LayerChoice made{config, {}};
  if (counts != even_counts) made.config.layout.layout = LayoutText(dims, counts);
  const CheckedConfig checked = CheckConfig(made.config, dims);
  made.config.recompute = SimplestOf(ByLayer(checked.placement, kinds));
  const ModelProfile mixed = MixProfiles(profiles, made.config.recompute);
  made.bound = BoundPlan(PlanSpread(made.config, checked, mixed), machine);
  return made;
}

}  // namespace

std::string LayoutText(const ModelDims& dims, const std::vector<int64_t>& layers) {
  const auto text_of = [](int64_t count) {
    return count == 0 ? "" : count == 1 ? std::string("t") : absl::StrCat("t*", count);
  };
  std::string text = absl::StrCat(dims.places.embedding ? "E" : "", text_of(layers.front()));
  for (size_t s = 1; s < layers.size();) {
    size_t end = s + 1;
    while (end < layers.size() && layers[end] == layers[s]) ++end;
    const std::string stage = absl::StrCat("|", text_of(layers[s]));
    absl::StrAppend(&text, end - s > 1 ? absl::StrCat("(", stage, ")*", end - s) : stage);
    s = end;
  }
  return absl::StrCat(text, dims.places.head ? "L" : "");
}

ModelProfile MixProfiles(const ProfilesByKind& profiles, const Recomputation& recomputation) {
  if (recomputation.by_layer().empty()) return *profiles[IndexOf(recomputation.Of(0))];
  ModelProfile mixed = LeastOf(profiles);
  const size_t first = mixed.has_embedding ? 1 : 0;
  for (size_t l = 0; l < recomputation.by_layer().size(); ++l) {
    const ModelProfile* profile = profiles[IndexOf(recomputation.by_layer()[l])];
    if (first + l < mixed.layers.size()) mixed.layers[first + l] = profile->layers[first + l];
  }
  return mixed;
}

absl::optional<LayerChoice> ChooseLayers(const ParallelConfig& config, const ModelDims& dims,
                                         const ProfilesByKind& profiles, const Machine& machine,
                                         int64_t memory, bool free_cuts) {
  if (!AreAlike(LeastOf(profiles))) return ChooseAlike(config, dims, profiles, machine, memory);
  int64_t within = memory;
  for (int i = 0; i < kMostTries; ++i) {
    absl::optional<LayerChoice> choice =
        ChooseWithin(config, dims, profiles, machine, within, free_cuts);
    if (!choice.has_value() || choice->bound.peak_bytes <= memory) return choice;
    within -= choice->bound.peak_bytes - memory;
  }
  return absl::nullopt;
}

}  // namespace mgc
