#include "passes/search/plans/search_space.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace mgc {
namespace {

constexpr int64_t kMostChunks = 16;       // of a rank
constexpr int64_t kMostSamples = 1 << 4;  // of a micro-batch on a rank
constexpr int64_t kMostCp = 1 << 6;
constexpr int64_t kMostPpUnnamed = 1 << 3;

std::vector<int64_t> DivisorsOf(int64_t number, int64_t most) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// Lists what `fixed` leaves open, from the outside in.
class Lister {
 public:
  Lister(const ParallelConfig& base, const FixedChoices& fixed, const ModelDims& dims,
         const Machine& machine)
      : base_(base), fixed_(fixed), dims_(dims), machine_(machine) {}

  SearchSpace Run() {
    const int64_t world = base_.world_size;
    for (const int64_t tp : SizesOf(fixed_.tp, base_.tp, world, MostTp())) {
      for (const int64_t cp : SizesOf(fixed_.cp, base_.cp, world / tp, MostCp())) {
        for (const int64_t pp : SizesOf(fixed_.pp, base_.pp, world / (tp * cp), MostPp())) {
          ParallelConfig config = base_;
          config.tp = tp;
          config.cp = cp;
          config.pp = pp;
          AddMesh(config);
        }
      }
    }
    space_.base = base_;
    space_.orders = std::move(orders_);
    for (auto& [key, candidates] : groups_) {
      space_.candidates += static_cast<int64_t>(candidates.size());
      space_.groups.push_back({key, std::move(candidates)});
    }
    return std::move(space_);
  }

 private:
  static std::vector<int64_t> SizesOf(bool fixed, int64_t given, int64_t ranks, int64_t most) {
    if (fixed) return ranks % given == 0 ? std::vector<int64_t>{given} : std::vector<int64_t>{};
    return DivisorsOf(ranks, std::max<int64_t>(most, 1));
  }
  int64_t MostTp() const { return dims_.heads > 0 ? dims_.heads : base_.world_size; }
  int64_t MostCp() const {
    return dims_.max_positions > 0 ? std::min(base_.seq_length, kMostCp) : 1;
  }
  // An end may stand alone in its stage. A graph that names no layers is cut by cost.
  int64_t MostStages() const {
    return dims_.layers + (dims_.places.embedding ? 1 : 0) + (dims_.places.head ? 1 : 0);
  }
  int64_t MostPp() const { return dims_.layers > 0 ? MostStages() : kMostPpUnnamed; }

  // The choices that a mesh leaves.
  void AddMesh(ParallelConfig config) {
    const int64_t dp = DataParallelSize(config);
    if (dp == 0 || config.global_batch_size % dp != 0) {
      ++space_.refused;
      return;
    }
    for (const int64_t samples : SizesOf(fixed_.micro_batch_size, base_.micro_batch_size,
                                         config.global_batch_size / dp, kMostSamples)) {
      config.micro_batch_size = samples;
      for (const bool sequence : SequenceChoices(config)) {
        config.sequence_parallel = sequence;
        for (const DType type : TypeChoices()) {
          config.compute_type = type;
          AddChunks(config);
        }
      }
    }
  }

  std::vector<bool> SequenceChoices(const ParallelConfig& config) const {
    if (fixed_.sequence_parallel) return {base_.sequence_parallel};
    if (config.tp == 1 || dims_.max_positions == 0) return {false};
    return {false, true};
  }

  std::vector<DType> TypeChoices() const {
    if (fixed_.precision) return {base_.compute_type};
    return {DType::kF32, DType::kBF16};
  }

  void AddChunks(ParallelConfig config) {
    for (const int64_t chunks : ChunkChoices(config)) {
      if (!fixed_.chunks) {
        config.vp = chunks;
        config.schedule = chunks > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
      }
      // All rules but those of what follows, which is legal by construction.
      const CheckedConfig checked = CheckConfig(config, dims_);
      if (!checked.violations.empty()) {
        ++space_.refused;
        for (const Diagnostic& violation : checked.violations) {
          if (!space_.refusals.Has(violation.label)) space_.refusals.Add(violation);
        }
        continue;
      }
      AddMemory(config, checked.dp);
    }
  }

  std::vector<int64_t> ChunkChoices(const ParallelConfig& config) const {
    std::vector<int64_t> chunks = {1};
    if (fixed_.chunks) return chunks;
    for (int64_t v = 2; config.pp > 1 && v <= kMostChunks && config.pp * v <= MostStages(); ++v) {
      chunks.push_back(v);
    }
    return chunks;
  }

  void AddMemory(const ParallelConfig& config, int64_t dp) {
    std::vector<Candidate>& candidates = groups_[KeyOf(config)];
    Candidate candidate{config.pp, config.vp, 0, config.schedule, 0, 0};
    for (const std::string& order : OrderChoices(config, dp)) {
      candidate.order = NumberOf(order);
      for (const auto& [zero, group] : ZeroChoices(config, dp)) {
        candidate.zero = static_cast<uint8_t>(zero);
        candidate.zero_group = group;
        candidates.push_back(candidate);
      }
    }
  }

  uint8_t NumberOf(const std::string& order) {
    const auto known = std::find(orders_.begin(), orders_.end(), order);
    const auto number = static_cast<uint8_t>(known - orders_.begin());
    if (known == orders_.end()) orders_.push_back(order);
    return number;
  }

  // Pipelines outside of dp, or inside, where that brings one of them nearer.
  std::vector<std::string> OrderChoices(const ParallelConfig& config, int64_t dp) const {
    if (fixed_.order || dp == 1 || config.pp == 1) return {base_.order};
    const int64_t inner = config.tp * config.cp;
    const auto tier = [this](int64_t last) {
      const int64_t ends[] = {0, last};
      return &machine_.TierOf(ends);
    };
    const bool alike = tier((dp - 1) * inner) == tier((dp - 1) * inner * config.pp) &&
                       tier(inner * dp) == tier(inner);
    if (alike) return {kDefaultAxisOrder};
    return {kDefaultAxisOrder, "tp-cp-ep-pp-dp"};
  }

  std::vector<std::pair<int64_t, int64_t>> ZeroChoices(const ParallelConfig& config,
                                                       int64_t dp) const {
    if (fixed_.zero && (fixed_.zero_group || base_.zero == 0)) {
      return {{base_.zero, base_.zero_group}};
    }
    std::vector<std::pair<int64_t, int64_t>> choices;
    const int64_t near = machine_.tiers.front().ranks / (config.tp * config.cp);
    for (int64_t zero = 0; zero <= 3; ++zero) {
      if (fixed_.zero ? zero != base_.zero : dp * config.cp == 1 && zero > 0) continue;
      if (fixed_.zero_group) {
        if (zero > 0) choices.emplace_back(zero, base_.zero_group);
        continue;
      }
      choices.emplace_back(zero, 0);
      if (zero > 0 && near > 1 && near < dp && dp % near == 0) choices.emplace_back(zero, near);
    }
    return choices;
  }

  const ParallelConfig& base_;
  const FixedChoices& fixed_;
  const ModelDims& dims_;
  const Machine& machine_;
  std::map<ProfileKey, std::vector<Candidate>> groups_;
  std::vector<std::string> orders_;
  SearchSpace space_;
};

// By how many of its choices a candidate differs, and whether each is a step. A size that does not
// fit beside the new one (sequence parallelism of tp 1, chunks of pp 1, ZeRO of dp 1) goes with it.
bool IsNeighbour(const ParallelConfig& a, const ParallelConfig& b) {
  const auto is_step = [](int64_t x, int64_t y) { return x == 2 * y || y == 2 * x; };
  int changes = 0;
  bool steps = true;
  const auto size = [&](int64_t x, int64_t y) {
    if (x == y) return;
    ++changes;
    steps = steps && is_step(x, y);
  };
  size(a.tp, b.tp);
  size(a.cp, b.cp);
  size(a.pp, b.pp);
  size(a.micro_batch_size, b.micro_batch_size);
  if (a.vp != b.vp && a.pp > 1 && b.pp > 1) {
    ++changes;
    steps = steps && (std::abs(a.vp - b.vp) == 1 || is_step(a.vp, b.vp));
  }
  if (a.sequence_parallel != b.sequence_parallel && a.tp > 1 && b.tp > 1) ++changes;
  if (a.compute_type != b.compute_type) ++changes;
  const bool shares = DataParallelSize(a) > 1 && DataParallelSize(b) > 1;
  if (shares && std::tie(a.zero, a.zero_group) != std::tie(b.zero, b.zero_group)) ++changes;
  if (a.order != b.order && shares && a.pp > 1 && b.pp > 1) ++changes;
  return changes == 1 && steps;
}

// Of all in a group: two sizes that both differ are two changes.
bool MayHaveNeighbours(const ProfileKey& key, const ParallelConfig& config) {
  return (key.tp != config.tp) + (key.cp != config.cp) +
             (key.micro_batch_size != config.micro_batch_size) +
             (key.compute_type != config.compute_type) <=
         1;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> NeighboursOf(const SearchSpace& space,
                                                    const ParallelConfig& config) {
  std::vector<std::pair<size_t, size_t>> neighbours;
  for (size_t g = 0; g < space.groups.size(); ++g) {
    if (!MayHaveNeighbours(space.groups[g].key, config)) continue;
    for (size_t i = 0; i < space.groups[g].candidates.size(); ++i) {
      if (IsNeighbour(space.ConfigOf(g, i), config)) neighbours.emplace_back(g, i);
    }
  }
  return neighbours;
}

ProfileKey KeyOf(const ParallelConfig& config) {
  return {config.tp, config.cp, config.sequence_parallel, config.micro_batch_size,
          config.compute_type};
}

ParallelConfig SearchSpace::ConfigOf(size_t group, size_t index) const {
  const ProfileKey& key = groups[group].key;
  const Candidate& candidate = groups[group].candidates[index];
  ParallelConfig config = base;
  config.tp = key.tp;
  config.cp = key.cp;
  config.sequence_parallel = key.sequence_parallel;
  config.micro_batch_size = key.micro_batch_size;
  config.compute_type = key.compute_type;
  config.pp = candidate.pp;
  config.vp = candidate.vp;
  config.schedule = candidate.schedule;
  config.zero = candidate.zero;
  config.zero_group = candidate.zero_group;
  config.order = orders[candidate.order];
  return config;
}

size_t SearchSpace::GroupOf(const ParallelConfig& config) const {
  const auto group =
      std::lower_bound(groups.begin(), groups.end(), KeyOf(config),
                       [](const CandidateGroup& a, const ProfileKey& key) { return a.key < key; });
  return static_cast<size_t>(group - groups.begin());
}

SearchSpace ListCandidates(const ParallelConfig& base, const FixedChoices& fixed,
                           const ModelDims& dims, const Machine& machine) {
  return Lister(base, fixed, dims, machine).Run();
}

}  // namespace mgc
