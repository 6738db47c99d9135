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
  Neighbours(const FixedChoices& fixed, const ParallelConfig& best) : fixed_(fixed), best_(best) {}

  std::vector<Neighbour> Run() {
    if (!fixed_.tp) AddSizes("--tp", &ParallelConfig::tp);
    if (!fixed_.cp) AddSizes("--cp", &ParallelConfig::cp);
    if (!fixed_.pp) AddSizes("--pp", &ParallelConfig::pp);
    if (!fixed_.micro_batch_size) {
      AddSizes("--micro-batch-size", &ParallelConfig::micro_batch_size);
    }
    if (!fixed_.chunks) AddChunks();
    if (!fixed_.sequence_parallel && best_.tp > 1) {
      ParallelConfig& config =
          Add(best_.sequence_parallel ? "without --sequence-parallel" : "--sequence-parallel");
      config.sequence_parallel = !best_.sequence_parallel;
    }
    if (!fixed_.recompute) AddRecomputation();
    if (!fixed_.zero && DataParallelSize(best_) > 1) AddZero();
    return std::move(neighbours_);
  }

 private:
  ParallelConfig& Add(std::string change) {
    neighbours_.push_back({std::move(change), best_});
    return neighbours_.back().config;
  }

  void AddSizes(const char* flag, int64_t ParallelConfig::*size) {
    const int64_t now = best_.*size;
    for (const int64_t other : {now / 2, now * 2}) {
      if (other == 0 || (now % 2 != 0 && other < now)) continue;
      ParallelConfig& config = Add(absl::StrCat(flag, " ", other));
      config.*size = other;
      if (config.tp == 1) config.sequence_parallel = false;
      if (config.pp == 1) {
        config.vp = 1;
        config.schedule = ScheduleKind::kOneFOneB;
      }
      if (DataParallelSize(config) == 1) config.zero = config.zero_group = 0;
    }
  }

  void AddChunks() {
    const int64_t now = std::max<int64_t>(best_.vp, 1);
    for (const int64_t other : {now - 1, now + 1}) {
      if (other < 1 || (other == 1 && now == 1) || best_.pp == 1) continue;
      const bool loops = other > 1;
      ParallelConfig& config = Add(loops ? absl::StrCat("--schedule interleaved --vp ", other)
                                         : std::string("--schedule 1f1b"));
      config.vp = other;
      config.schedule = loops ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
    }
  }

  void AddRecomputation() {
    for (const RecomputeKind kind :
         {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull}) {
      if (kind == best_.recompute) continue;
      Add(absl::StrCat("--recompute ", ToString(kind))).recompute = kind;
    }
  }

  void AddZero() {
    for (const int64_t other : {best_.zero - 1, best_.zero + 1}) {
      if (other < 0 || other > 3) continue;
      ParallelConfig& config = Add(absl::StrCat("--zero ", other));
      config.zero = other;
      if (other == 0) config.zero_group = 0;
    }
  }

  const FixedChoices& fixed_;
  const ParallelConfig& best_;
  std::vector<Neighbour> neighbours_;
};

}  // namespace

std::vector<Neighbour> NeighboursOf(const FixedChoices& fixed, const ParallelConfig& config) {
  return Neighbours(fixed, config).Run();
}

}  // namespace mgc
