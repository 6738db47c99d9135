#include "passes/plan/schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "passes/config/place_layers.h"

namespace mgc {
namespace {

// Rounds that a shorter schedule has: the first fills the pipeline and the last empties it, and of
// the others three tell whether each takes as long as the one before.
constexpr int64_t kRounds = 5;

ScheduleAction MakeAction(int64_t stage, ScheduleActionKind kind, int64_t micro_batch) {
  return {static_cast<int32_t>(stage), kind, static_cast<int32_t>(micro_batch)};
}

// Runs `warmup` forwards, then forward/backward pairs, then the backwards that are left.
std::vector<ScheduleAction> WarmUpThenPairs(const std::vector<ScheduleAction>& forwards,
                                            const std::vector<ScheduleAction>& backwards,
                                            size_t warmup) {
  std::vector<ScheduleAction> list(forwards.begin(), forwards.begin() + warmup);
  list.reserve(2 * forwards.size());
  for (size_t i = warmup; i < forwards.size(); ++i) {
    list.push_back(forwards[i]);
    list.push_back(backwards[i - warmup]);
  }
  list.insert(list.end(), backwards.end() - warmup, backwards.end());
  return list;
}

// The order in which a rank takes (chunk, micro-batch) forward; backward mirrors the chunks.
std::vector<std::pair<int64_t, int64_t>> InterleavedTable(int64_t vp, int64_t micro_batches,
                                                          int64_t group_size) {
  std::vector<std::pair<int64_t, int64_t>> table;
  table.reserve(vp * micro_batches);
  for (int64_t first = 0; first < micro_batches; first += group_size) {
    const int64_t last = std::min(first + group_size, micro_batches);
    for (int64_t chunk = 0; chunk < vp; ++chunk) {
      for (int64_t mb = first; mb < last; ++mb) table.emplace_back(chunk, mb);
    }
  }
  return table;
}

// By pipeline rank and chunk.
std::vector<std::vector<int64_t>> StagesOfRanks(const ScheduleSpec& spec) {
  std::vector<std::vector<int64_t>> stages(spec.pp, std::vector<int64_t>(spec.vp));
  const std::vector<StagePlace> places = LoopPlaces(spec.pp, spec.vp);
  for (size_t s = 0; s < places.size(); ++s) {
    stages[places[s].rank_class][places[s].chunk] = static_cast<int64_t>(s);
  }
  return stages;
}

int64_t WarmUp(const ScheduleSpec& spec, int64_t group_size, int64_t rank) {
  const int64_t total = spec.vp * spec.micro_batches;
  const int64_t after = spec.pp - 1 - rank;
  switch (spec.kind) {
    case ScheduleKind::kGpipe:
      return total;
    case ScheduleKind::kOneFOneB:
      return std::min(after, total);
    case ScheduleKind::kInterleaved:
      return std::min(2 * after + (spec.vp - 1) * group_size, total);
  }
  return total;
}

}  // namespace

absl::StatusOr<PipelineSchedule> BuildSchedule(const ScheduleSpec& spec) {
  MGC_RETURN_IF_ERROR(CheckSchedule(spec).ToStatus());
  const int64_t group_size =
      spec.group_size > 0 ? spec.group_size : ChooseGroupSize(spec.pp, spec.micro_batches);
  const auto table = InterleavedTable(spec.vp, spec.micro_batches, group_size);
  const std::vector<std::vector<int64_t>> stages = StagesOfRanks(spec);
  PipelineSchedule schedule{spec.pp, spec.vp, spec.micro_batches, {}};
  for (int64_t rank = 0; rank < spec.pp; ++rank) {
    std::vector<ScheduleAction> forwards;
    std::vector<ScheduleAction> backwards;
    for (const auto& [chunk, micro_batch] : table) {
      forwards.push_back(
          MakeAction(stages[rank][chunk], ScheduleActionKind::kForward, micro_batch));
      backwards.push_back(MakeAction(stages[rank][spec.vp - 1 - chunk],
                                     ScheduleActionKind::kBackward, micro_batch));
    }
    const int64_t warmup = WarmUp(spec, group_size, rank);
    schedule.lists.push_back(WarmUpThenPairs(forwards, backwards, static_cast<size_t>(warmup)));
  }
  return schedule;
}

absl::optional<ShorterSchedule> LeaveOutRounds(const ScheduleSpec& spec) {
  if (spec.kind == ScheduleKind::kGpipe) return absl::nullopt;
  ScheduleSpec shorter = spec;
  int64_t round = spec.pp;
  if (spec.kind == ScheduleKind::kInterleaved) {
    const bool is_given = spec.group_size > 0;
    round = is_given ? spec.group_size : ChooseGroupSize(spec.pp, spec.micro_batches);
    shorter.group_size = round;
  }
  const int64_t left_out = spec.micro_batches / round - kRounds;
  if (left_out < 1) return absl::nullopt;
  shorter.micro_batches -= left_out * round;
  absl::StatusOr<PipelineSchedule> schedule = BuildSchedule(shorter);
  MGC_CHECK(schedule.ok()) << schedule.status().message();
  return ShorterSchedule{*std::move(schedule), round, left_out};
}

}  // namespace mgc
