#include "tools/cli/why_not.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/units.h"
#include "passes/config/check_config.h"
#include "passes/config/config_flags.h"
#include "tools/views/peak.h"

namespace mgc {
namespace {

// One choice changed at a time.
class Neighbours {
 public:
  Neighbours(const FixedChoices& fixed, const ParallelConfig& best)
      : fixed_(fixed), best_(best), plain_(best) {
    if (!fixed.cuts) plain_.layout.layout.reset();
    if (!fixed.recompute) plain_.recompute = RecomputeKind::kNone;
  }

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
    neighbours_.push_back({std::move(change), plain_});
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
      ParallelConfig& config = Add(absl::StrCat("--recompute ", ToString(kind)));
      config.layout = best_.layout;
      config.recompute = kind;
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
  ParallelConfig plain_;  // without what a search has chosen for its layers
  std::vector<Neighbour> neighbours_;
};

std::string FirstLine(absl::string_view text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return lines.front();
}

}  // namespace

std::string WhereFullest(const Plan& plan, int64_t memory) {
  const PlanClass& fullest = FullestClass(plan);
  const PeakMoment moment = FindPeak(plan, fullest);
  return absl::StrCat(BytesText(PeakBytes(plan)), " of ", BytesText(memory), ", pipeline rank ",
                      fullest.coordinate, " at ", moment.segment, " ", moment.op, ", ",
                      moment.action);
}

std::vector<Neighbour> NeighboursOf(const FixedChoices& fixed, const ParallelConfig& config) {
  return Neighbours(fixed, config).Run();
}

namespace {

// Of a plan that fits: by how much its step differs.
std::string Slower(int64_t step_ns, int64_t best_ns) {
  const double ratio = static_cast<double>(step_ns) / static_cast<double>(best_ns);
  return absl::StrFormat("%.1f %% %s", 100.0 * std::abs(ratio - 1),
                         ratio > 1 ? "slower" : "faster");
}

// Whether they differ in the layers of their stages alone, and what is computed again there.
bool IsOfOneMesh(ParallelConfig a, const ParallelConfig& b) {
  a.layout.layout = b.layout.layout;
  a.recompute = b.recompute;
  return FlagsText(a) == FlagsText(b);
}

std::string SlowerText(const NeighbourPlan& plan, int64_t best_ns) {
  const std::string slower = Slower(plan.step_ns, best_ns);
  switch (plan.source) {
    case NeighbourPlan::kCompiled:
      return slower;
    case NeighbourPlan::kBound:
      return absl::StrCat("at least ", slower);
    case NeighbourPlan::kExpected:
      return absl::StrCat("about ", slower);
  }
  return slower;
}

// Empty where a neighbour comes to the same.
std::string WhyNot(const SearchRequest& request, const FoundPlans& found,
                   const ParallelConfig& config) {
  const int64_t memory = request.options.machine.memory;
  const int64_t best_ns = found.ranked.front().step_ns;
  const CheckedConfig checked = CheckConfig(config, request.dims);
  if (!checked.violations.empty()) {
    return absl::StrCat(checked.violations[0].text, " [", checked.violations[0].label, "]");
  }
  for (const NeighbourPlan& known : found.neighbours) {
    if (!known.fits || !IsOfOneMesh(known.config, config)) continue;
    return known.step_ns == best_ns ? "" : SlowerText(known, best_ns);
  }
  const absl::StatusOr<Plan> plan = CompileFound(request, config);
  if (!plan.ok()) return FirstLine(plan.status().message());
  if (PeakBytes(*plan) > memory) return WhereFullest(*plan, memory);
  return plan->predicted_step_ns == best_ns ? "" : Slower(plan->predicted_step_ns, best_ns);
}

}  // namespace

std::vector<RejectedPlan> ExplainNeighbours(const SearchRequest& request, const FoundPlans& found) {
  std::vector<RejectedPlan> rejected;
  for (const Neighbour& neighbour : NeighboursOf(request.fixed, found.ranked.front().config)) {
    std::string why = WhyNot(request, found, neighbour.config);
    if (!why.empty()) rejected.push_back({neighbour.change, std::move(why)});
  }
  return rejected;
}

}  // namespace mgc
