#include "passes/config/schedule_spec.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/config/nearest_legal.h"

namespace mgc {
namespace {

// Legal in Megatron's sense: in [pp, M] with an empty or long enough last group.
bool IsLegalGroupSize(int64_t group_size, int64_t pp, int64_t micro_batches) {
  if (group_size < pp || group_size > micro_batches) return false;
  const int64_t rest = micro_batches % group_size;
  return rest == 0 || rest >= pp;
}

void CheckGroupSize(const ScheduleSpec& spec, Diagnostics* violations) {
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
  violations->Add({"P13", why,
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

Diagnostics CheckSchedule(const ScheduleSpec& spec) {
  Diagnostics violations;
  const std::array<std::pair<const char*, int64_t>, 3> sizes = {
      {{"pp", spec.pp}, {"vp", spec.vp}, {"micro-batches", spec.micro_batches}}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) violations.Add({"S0", absl::StrCat(name, " is ", size), "1"});
  }
  if (spec.group_size < 0) {
    violations.Add({"S0", absl::StrCat("group size is ", spec.group_size), "1"});
  }
  if (!violations.empty()) return violations;
  if (spec.vp > 1 && spec.pp == 1) {
    violations.Add(
        {"G10", absl::StrCat("vp ", spec.vp, " needs pp > 1, but pp is 1"), "vp 1, or pp 2"});
  }
  if (spec.vp > 1 && spec.kind != ScheduleKind::kInterleaved) {
    violations.Add(
        {"S1",
         absl::StrCat("vp ", spec.vp, " needs schedule interleaved, not ", ToString(spec.kind)),
         "schedule interleaved, or vp 1"});
  }
  const int64_t actions = SaturatingMultiply(SaturatingMultiply(spec.pp, spec.vp),
                                             SaturatingMultiply(spec.micro_batches, 2));
  if (actions > kMaxScheduleActions) {
    violations.Add(
        {"S2",
         absl::StrCat("pp ", spec.pp, " * vp ", spec.vp, " * micro-batches ", spec.micro_batches,
                      " * 2 actions are more than ", kMaxScheduleActions),
         ""});
    return violations;
  }
  CheckGroupSize(spec, &violations);
  return violations;
}

}  // namespace mgc
