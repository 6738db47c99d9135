#include "passes/search/plans/layer_chooser.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

int64_t NsOf(const LayerProfile& layer) { return Later(layer.forward_ns, layer.backward_ns); }

// Of fewer layers all numbers are looked at, of more so many beside each that seems best.
constexpr int64_t kFewLayers = 64;
constexpr int64_t kWindow = 4;

// What says how promising a candidate is need not be exact.
constexpr int64_t kAbout = 1024;

// The least number of which something is true that is true of all above it; `most` where none is.
int64_t FirstWhere(int64_t most, absl::FunctionRef<bool(int64_t)> is_true) {
  int64_t low = 0;
  int64_t high = most;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_true(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

LayerChooser::LayerChooser(const PlanSpread& spread, const ProfilesByKind& profiles, int64_t memory)
    : spread_(spread),
      memory_(memory),
      ranks_(spread.parts->ranks.size()),
      micro_batches_(spread.checked.micro_batches) {
  for (const StageContent& stage : spread.checked.placement.stages) num_layers_ += stage.num_layers;
  const size_t middle = FirstLayer() + num_profiled() / 2;
  for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
    if (profiles[k] == nullptr) continue;
    allowed_[k] = true;
    if (num_profiled() == 0) continue;
    const LayerProfile& layer = profiles[k]->layers[middle];
    layer_[k] = {NsOf(layer), layer.frame_bytes, spread.BlockBytes(layer)};
  }
  for (size_t c = 0; c < ranks_; ++c) own_.push_back({OwnNs(c), OwnBytes(c), Frames(c)});
  are_alike_ = AreAlike();
  if (!are_alike_ && static_cast<int64_t>(num_profiled()) == num_layers_) ListLayers(profiles);
}

bool LayerChooser::AreAlike() const {
  const std::vector<LayerProfile>& layers = spread_.profile.layers;
  if (num_profiled() == 0) return false;
  const LayerProfile& one = layers[FirstLayer() + num_profiled() / 2];
  const auto near = [](int64_t a, int64_t b) { return std::abs(a - b) <= b / 16; };
  const auto first = layers.begin() + static_cast<int64_t>(FirstLayer());
  const auto end = first + static_cast<int64_t>(num_profiled());
  return std::all_of(first, end, [&](const LayerProfile& layer) {
    return near(NsOf(layer), NsOf(one)) && near(layer.frame_bytes, one.frame_bytes) &&
           near(layer.param_bytes, one.param_bytes);
  });
}

void LayerChooser::ListLayers(const ProfilesByKind& profiles) {
  blocks_before_ = ns_before_ = {0};
  for (int64_t l = 0; l < num_layers_; ++l) {
    const size_t layer = FirstLayer() + static_cast<size_t>(l);
    KindCosts costs;
    for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
      if (profiles[k] == nullptr) continue;
      const LayerProfile& profile = profiles[k]->layers[layer];
      costs[k] = KindCost{NsOf(profile), profile.frame_bytes};
    }
    ns_before_.push_back(Later(ns_before_.back(), costs[Least()]->ns));
    blocks_before_.push_back(blocks_before_.back() +
                             spread_.BlockBytes(profiles[Least()]->layers[layer]));
    by_layer_.push_back(costs);
  }
}

std::vector<int64_t> LayerChooser::EvenCounts() const {
  std::vector<int64_t> counts(ranks_, 0);
  const LayerPlacement& placement = spread_.checked.placement;
  for (size_t s = 0; s < placement.stages.size(); ++s) {
    const auto rank = static_cast<size_t>(placement.places[s].rank_class);
    counts[rank] += placement.stages[s].num_layers;
  }
  return counts;
}

std::vector<int64_t> LayerChooser::BestCounts(int64_t exact) {
  std::vector<int64_t> best = CountsWithin(kMaxNs);
  if (best.empty()) return best;
  int64_t low = 0;  // too little
  int64_t high = StepOf(best);
  while (high - low > std::max<int64_t>(high / exact, 1)) {
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

absl::optional<std::vector<RecomputeKind>> LayerChooser::KindsOf(
    size_t rank, const std::vector<int64_t>& layers) const {
  if (!are_alike_) {
    KindsChoice choice = ChooseByLayer(rank, layers);
    return choice.fits ? absl::make_optional(std::move(choice.kinds)) : absl::nullopt;
  }
  const RankChoice choice = ChooseAlike(rank, static_cast<int64_t>(layers.size()));
  if (!choice.fits) return absl::nullopt;
  std::vector<RecomputeKind> kinds;
  for (size_t k = kNumRecomputeKinds; k-- > 0;) {
    kinds.insert(kinds.end(), static_cast<size_t>(choice.counts[k]), kRecomputeKinds[k]);
  }
  return kinds;
}

RankChoice LayerChooser::Choose(size_t rank, int64_t first, int64_t layers) const {
  if (are_alike_) return ChooseAlike(rank, layers);
  std::vector<int64_t> all(static_cast<size_t>(layers));
  std::iota(all.begin(), all.end(), first);
  const KindsChoice choice = ChooseByLayer(rank, all);
  return {choice.fits, Later(own_[rank].ns, choice.ns), {}};
}

KindsChoice LayerChooser::ChooseByLayer(size_t rank, const std::vector<int64_t>& layers) const {
  const RankCost& own = own_[rank];
  int64_t room = memory_ - own.bytes;
  std::vector<KindCosts> costs;
  for (const int64_t layer : layers) {
    const auto l = static_cast<size_t>(layer);
    room -= blocks_before_[l + 1] - blocks_before_[l];
    costs.push_back(by_layer_[l]);
  }
  KindsChoice choice = ChooseKinds(costs, room < 0 ? -1 : room / own.frames);
  choice.fits = choice.fits && room >= 0;
  return choice;
}

RankChoice LayerChooser::ChooseAlike(size_t rank, int64_t layers) const {
  const int64_t most = allowed_[2] ? layers : 0;
  if (most <= kFewLayers) return ChooseAmong(rank, layers, 0, most);
  // Between the least number that fits and the one beside which all others are kept, time goes up
  // or down with the number, but for what rounding gives away: least it is near one of the two.
  const size_t least = Least();
  if (least == 2) return ChooseBeside(rank, layers, most);
  const int64_t kept = layer_[least].frame_bytes;
  const bool selects = least == 0 && allowed_[1] && layer_[1].frame_bytes < kept;
  const int64_t fits = FullBeside(rank, layers, selects ? layer_[1].frame_bytes : kept);
  const int64_t keeps = FullBeside(rank, layers, kept);
  const RankChoice few = ChooseAmong(rank, layers, fits, std::min(fits + kWindow, most));
  const RankChoice many = ChooseAmong(rank, layers, std::max<int64_t>(keeps - kWindow, 0), keeps);
  return !few.fits || (many.fits && many.ns < few.ns) ? many : few;
}

int64_t LayerChooser::FullBeside(size_t rank, int64_t layers, int64_t others_frame) const {
  const RankCost& own = own_[rank];
  const int64_t room = memory_ - own.bytes - layers * layer_[Least()].block_bytes;
  const int64_t over = own.frames * layers * others_frame - room;
  const int64_t saved = own.frames * (others_frame - layer_[2].frame_bytes);
  if (over <= 0) return 0;
  return saved <= 0 ? layers : std::min(layers, (over + saved - 1) / saved);
}

int64_t LayerChooser::RecomputedNs() {
  if (!knows_layers() || !can_cut()) return 0;
  const std::vector<int64_t> counts = BestCounts(kAbout);
  if (counts.empty()) return kMaxNs;
  const int64_t kept = StepOf(EvenCounts(), [&](size_t rank, int64_t first, int64_t layers) {
    return Later(own_[rank].ns, LeastNs(first, layers));
  });
  return std::max<int64_t>(0, StepOf(counts) - kept);
}

int64_t LayerChooser::LeastNs(int64_t first, int64_t layers) const {
  if (are_alike_) return Times(layers, layer_[Least()].ns);
  return ns_before_[static_cast<size_t>(first + layers)] - ns_before_[static_cast<size_t>(first)];
}

StageCosts LayerChooser::Costs() const {
  const auto ns_of = [](const LayerProfile& end) { return end.forward_ns + end.backward_ns; };
  const ModelProfile& profile = spread_.profile;
  StageCosts costs;
  costs.layer_ns = layer_[Least()].ns;
  if (profile.has_embedding) costs.embedding_ns = ns_of(profile.layers.front());
  if (profile.has_head) costs.head_ns = ns_of(profile.layers.back());
  return costs;
}

int64_t LayerChooser::Frames(size_t rank) const {
  return std::max<int64_t>(spread_.Begun(rank) / spread_.checked.vp, 1);
}

int64_t LayerChooser::OwnBytes(size_t rank) const {
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

int64_t LayerChooser::OwnNs(size_t rank) const {
  int64_t ns = 0;
  const std::vector<LayerProfile>& layers = spread_.profile.layers;
  if (HasEmbedding(rank)) ns += layers.front().forward_ns + layers.front().backward_ns;
  if (HasHead(rank)) ns += layers.back().forward_ns + layers.back().backward_ns;
  return ns;
}

RankChoice LayerChooser::ChooseAmong(size_t rank, int64_t layers, int64_t first,
                                     int64_t last) const {
  RankChoice best;
  for (int64_t full = first; full <= last; ++full) {
    const RankChoice choice = ChooseBeside(rank, layers, full);
    if (choice.fits && (!best.fits || choice.ns < best.ns)) best = choice;
    // Computing one more again, where all others are kept, takes no less.
    if (KeepsOthers(choice) && layer_[2].ns >= layer_[0].ns) break;
  }
  return best;
}

RankChoice LayerChooser::ChooseBeside(size_t rank, int64_t layers, int64_t full) const {
  const int64_t others = layers - full;
  const size_t least = Least();
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

RankChoice LayerChooser::At(size_t rank, int64_t first, int64_t layers) {
  const auto [known, is_new] = table_.try_emplace({rank, are_alike_ ? 0 : first, layers});
  if (is_new) known->second = Choose(rank, first, layers);
  return known->second;
}

bool LayerChooser::Fits(const std::vector<int64_t>& counts) {
  int64_t first = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    if (!At(c, first, counts[c]).fits) return false;
    first += counts[c];
  }
  return true;
}

// Of the busiest rank: the first micro-batch's way to it, through one chunk of each, and all of its
// own.
int64_t LayerChooser::StepOf(const std::vector<int64_t>& counts, NsOfRank ns_of) const {
  int64_t step = 0;
  int64_t way = 0;
  int64_t first = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    const int64_t ns = ns_of(c, first, counts[c]);
    step = std::max(step, Later(way, Times(micro_batches_, ns)));
    way = Later(way, ns / spread_.checked.vp);
    first += counts[c];
  }
  return step;
}

int64_t LayerChooser::StepOf(const std::vector<int64_t>& counts) {
  return StepOf(counts, [&](size_t rank, int64_t first, int64_t layers) {
    return At(rank, first, layers).ns;
  });
}

std::vector<int64_t> LayerChooser::CountsWithin(int64_t limit) {
  std::vector<int64_t> counts;
  int64_t first = 0;
  int64_t needed = 0;  // by the ranks behind
  for (size_t c = 0; c < ranks_; ++c) needed += LeastLayers(c);
  int64_t way = 0;
  for (size_t c = 0; c < ranks_; ++c) {
    needed -= LeastLayers(c);
    const int64_t least = LeastLayers(c);
    const auto is_late = [&](int64_t ns) {
      return Later(way, Times(micro_batches_, Later(own_[c].ns, ns))) > limit;
    };
    // One layer more takes no less memory and no less time.
    const int64_t most = num_layers_ - first - needed - least + 1;
    const int64_t n = least - 1 + FirstWhere(most, [&](int64_t more) {
                        if (is_late(LeastNs(first, least + more))) return true;
                        const RankChoice next = At(c, first, least + more);
                        return !next.fits || is_late(next.ns - own_[c].ns);
                      });
    if (n < least) return {};
    counts.push_back(n);
    way = Later(way, At(c, first, n).ns / spread_.checked.vp);
    first += n;
  }
  return first == num_layers_ ? counts : std::vector<int64_t>();
}

}  // namespace mgc
