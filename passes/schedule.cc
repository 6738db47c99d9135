#include "passes/schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "passes/nearest_legal.h"

namespace mgc {
namespace {

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

// Legal in Megatron's sense: in [pp, M] with an empty or long enough last group.
bool IsLegalGroupSize(int64_t group_size, int64_t pp, int64_t micro_batches) {
  if (group_size < pp || group_size > micro_batches) return false;
  const int64_t rest = micro_batches % group_size;
  return rest == 0 || rest >= pp;
}

void CheckGroupSize(const ScheduleSpec& spec, std::vector<Violation>* violations) {
  if (spec.kind != ScheduleKind::kInterleaved || spec.group_size == 0 ||
      IsLegalGroupSize(spec.group_size, spec.pp, spec.micro_batches)) {
    return;
  }
  const int64_t rest = spec.micro_batches % spec.group_size;
  std::string why = absl::StrCat("group size ", spec.group_size, " is not in [pp ", spec.pp,
                                 ", micro-batches ", spec.micro_batches, "]");
  if (spec.group_size >= spec.pp && spec.group_size <= spec.micro_batches) {
    why = absl::StrCat("micro-batches ", spec.micro_batches, " over group size ", spec.group_size,
                       " leave a last group of ", rest, ", less than pp ", spec.pp);
  }
  std::string legal =
      NearestLegal(spec.group_size, spec.micro_batches, [&spec](int64_t group_size) {
        return IsLegalGroupSize(group_size, spec.pp, spec.micro_batches);
      });
  violations->push_back({"P13", why,
                         legal.empty() ? absl::StrCat("no group size given, or micro-batches of ",
                                                      spec.pp, " and more")
                                       : absl::StrCat("group size ", legal)});
}

}  // namespace

int64_t ChooseGroupSize(int64_t pp, int64_t micro_batches) {
  for (int64_t group_size = pp; group_size < micro_batches; ++group_size) {
    if (IsLegalGroupSize(group_size, pp, micro_batches)) return group_size;
  }
  return micro_batches;
}

std::vector<Violation> CheckSchedule(const ScheduleSpec& spec) {
  std::vector<Violation> violations;
  const std::array<std::pair<const char*, int64_t>, 3> sizes = {
      {{"pp", spec.pp}, {"vp", spec.vp}, {"micro-batches", spec.micro_batches}}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) violations.push_back({"S0", absl::StrCat(name, " is ", size), "1"});
  }
  if (spec.group_size < 0) {
    violations.push_back({"S0", absl::StrCat("group size is ", spec.group_size), "1"});
  }
  if (!violations.empty()) return violations;
  if (spec.vp > 1 && spec.pp == 1) {
    violations.push_back(
        {"G10", absl::StrCat("vp ", spec.vp, " needs pp > 1, but pp is 1"), "vp 1, or pp 2"});
  }
  if (spec.vp > 1 && spec.kind != ScheduleKind::kInterleaved) {
    violations.push_back(
        {"S1",
         absl::StrCat("vp ", spec.vp, " needs schedule interleaved, not ", ToString(spec.kind)),
         "schedule interleaved, or vp 1"});
  }
  const int64_t actions = SaturatingMultiply(SaturatingMultiply(spec.pp, spec.vp),
                                             SaturatingMultiply(spec.micro_batches, 2));
  if (actions > kMaxScheduleActions) {
    violations.push_back(
        {"S2",
         absl::StrCat("pp ", spec.pp, " * vp ", spec.vp, " * micro-batches ", spec.micro_batches,
                      " * 2 actions are more than ", kMaxScheduleActions),
         ""});
    return violations;
  }
  CheckGroupSize(spec, &violations);
  return violations;
}

absl::StatusOr<PipelineSchedule> BuildSchedule(const ScheduleSpec& spec) {
  const std::vector<Violation> violations = CheckSchedule(spec);
  if (!violations.empty()) return absl::InvalidArgumentError(ToString(violations));
  const int64_t group_size =
      spec.group_size > 0 ? spec.group_size : ChooseGroupSize(spec.pp, spec.micro_batches);
  const auto table = InterleavedTable(spec.vp, spec.micro_batches, group_size);
  PipelineSchedule schedule{spec.pp, spec.vp, spec.micro_batches, {}};
  for (int64_t rank = 0; rank < spec.pp; ++rank) {
    std::vector<ScheduleAction> forwards;
    std::vector<ScheduleAction> backwards;
    for (const auto& [chunk, micro_batch] : table) {
      forwards.push_back(
          MakeAction(chunk * spec.pp + rank, ScheduleActionKind::kForward, micro_batch));
      backwards.push_back(MakeAction((spec.vp - 1 - chunk) * spec.pp + rank,
                                     ScheduleActionKind::kBackward, micro_batch));
    }
    const int64_t warmup = WarmUp(spec, group_size, rank);
    schedule.ranks.push_back(WarmUpThenPairs(forwards, backwards, static_cast<size_t>(warmup)));
  }
  return schedule;
}

std::string ToString(const ScheduleAction& action) {
  const char* kind = "?";
  switch (action.kind) {
    case ScheduleActionKind::kForward:
      kind = "F";
      break;
    case ScheduleActionKind::kBackward:
      kind = "B";
      break;
    case ScheduleActionKind::kInputGradient:
      kind = "I";
      break;
    case ScheduleActionKind::kWeightGradient:
      kind = "W";
      break;
  }
  return absl::StrCat(action.stage, kind, action.micro_batch);
}

}  // namespace mgc
