#include "tools/advice/neighbours.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

// One choice changed at a time.
class Neighbours {
 public:
  Neighbours(const NeighbourLimits& limits, const ParallelConfig& from)
      : limits_(limits), fixed_(limits.fixed), from_(from) {}

  std::vector<Neighbour> Run() {
    if (!fixed_.tp) AddRanks("--tp", &ParallelConfig::tp);
    if (!fixed_.cp) AddRanks("--cp", &ParallelConfig::cp);
    if (!fixed_.pp) AddRanks("--pp", &ParallelConfig::pp);
    if (!fixed_.micro_batch_size) AddMicroBatch();
    if (!fixed_.chunks) AddChunks();
    if (!fixed_.sequence_parallel && from_.tp > 1) {
      const bool on = !from_.sequence_parallel;
      Add(on ? "--sequence-parallel" : "without --sequence-parallel", on).sequence_parallel = on;
    }
    if (!fixed_.recompute) AddRecomputation();
    if (!fixed_.zero && DataParallelSize(from_) > 1) AddZero();
    if (!fixed_.precision) AddPrecision();
    return std::move(neighbours_);
  }

 private:
  ParallelConfig& Add(std::string change, bool saves) {
    neighbours_.push_back({std::move(change), from_, saves});
    return neighbours_.back().config;
  }

  static int64_t Below(int64_t size) { return size % 2 == 0 ? size / 2 : 1; }

  void AddPrecision() {
    if (from_.compute_type == DType::kF32) Add("--bf16", true).compute_type = DType::kBF16;
    if (from_.compute_type == DType::kBF16) Add("without --bf16", false).compute_type = DType::kF32;
  }

  // Along tp, cp or pp, taken from dp or given to it.
  void AddRanks(const char* flag, int64_t ParallelConfig::*size) {
    const int64_t now = from_.*size;
    for (const int64_t other : {Below(now), now * 2}) {
      if (other == now) continue;
      const bool more_ranks = !limits_.ranks && other > now && DataParallelSize(from_) % 2 != 0;
      const int64_t world = more_ranks ? 2 * from_.world_size : from_.world_size;
      ParallelConfig& config =
          Add(absl::StrCat(flag, " ", other, more_ranks ? " --world-size " : "",
                           more_ranks ? absl::StrCat(world) : ""),
              other > now);
      config.*size = other;
      config.world_size = world;
      if (config.tp == 1) config.sequence_parallel = false;
      if (config.pp == 1) {
        config.vp = 1;
        config.schedule = ScheduleKind::kOneFOneB;
      }
      if (DataParallelSize(config) == 1) config.zero = config.zero_group = 0;
    }
  }

  void AddMicroBatch() {
    const int64_t now = from_.micro_batch_size;
    for (const int64_t other : {Below(now), now * 2}) {
      if (other == now) continue;
      Add(absl::StrCat("--micro-batch-size ", other), other < now).micro_batch_size = other;
    }
  }

  void AddChunks() {
    const int64_t now = std::max<int64_t>(from_.vp, 1);
    if (from_.schedule == ScheduleKind::kGpipe) return AddLoops(1, true);
    if (from_.pp == 1) return;
    if (now > 2) AddLoops(1, true);
    if (now > 1) AddLoops(now - 1, true);
    AddLoops(now + 1, false);
  }

  void AddLoops(int64_t chunks, bool saves) {
    const bool loops = chunks > 1;
    ParallelConfig& config = Add(loops ? absl::StrCat("--schedule interleaved --vp ", chunks)
                                       : std::string("--schedule 1f1b"),
                                 saves);
    config.vp = chunks;
    config.schedule = loops ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
    if (!loops) config.group_size = 0;
  }

  void AddRecomputation() {
    for (const RecomputeKind kind :
         {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull}) {
      if (kind == from_.recompute) continue;
      const bool saves = kind != RecomputeKind::kNone && !from_.recompute.Has(kind) &&
                         !from_.recompute.Has(RecomputeKind::kFull);
      Add(absl::StrCat("--recompute ", ToString(kind)), saves).recompute = kind;
    }
  }

  void AddZero() {
    for (const int64_t other : {from_.zero - 1, from_.zero + 1}) {
      if (other < 0 || other > 3) continue;
      ParallelConfig& config = Add(absl::StrCat("--zero ", other), other > from_.zero);
      config.zero = other;
      if (other == 0) config.zero_group = 0;
    }
  }

  const NeighbourLimits& limits_;
  const FixedChoices& fixed_;
  const ParallelConfig& from_;
  std::vector<Neighbour> neighbours_;
};

}  // namespace

std::vector<Neighbour> NeighboursOf(const NeighbourLimits& limits, const ParallelConfig& config) {
  return Neighbours(limits, config).Run();
}

}  // namespace mgc
