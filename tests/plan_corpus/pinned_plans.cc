#include "tests/plan_corpus/pinned_plans.h"

#include <xxhash.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "graph/plan/text/plan_text.h"
#include "tests/plan_corpus/normal_form.h"
#include "tests/same_loss/train_cases.h"
#include "tools/views/comm.h"

namespace mgc {
namespace {

constexpr int64_t kLossSteps = 5;

std::string Hash(const std::string& text) {
  return absl::StrFormat("%016x", XXH3_64bits(text.data(), text.size()));
}

// A plan's text without the lines of our files that made it, which move with any comment there.
std::string WithoutLines(absl::string_view text) {
  constexpr absl::string_view kFileEnd = ".cc\":";
  std::string made;
  for (size_t end = 0; (end = text.find(kFileEnd)) != absl::string_view::npos;) {
    end += kFileEnd.size();
    absl::StrAppend(&made, text.substr(0, end));
    text.remove_prefix(std::min(text.size(), text.find_first_not_of("0123456789:", end)));
  }
  return absl::StrCat(made, text);
}

// What the cases of same losses leave out: flags of the layout, group sizes, orders of the axes, a
// whole model.
std::vector<TrainCase> MoreTrainCases() {
  std::vector<TrainCase> cases;
  cases.push_back(GptCase(1, 1, 1));
  cases.push_back(LlamaCase(1, 1, 1));
  TrainCase ends = GptCase(1, 3, 1);
  ends.parallel.layout.account_for_embedding = ends.parallel.layout.account_for_loss = true;
  cases.push_back(ends);
  TrainCase last = LlamaCase(1, 3, 1);
  last.parallel.layout.decoder_last_layers = 1;
  last.layers = 5;
  cases.push_back(last);
  TrainCase groups = WithSchedule(LlamaCase(1, 2, 1), ScheduleKind::kInterleaved, 2);
  groups.parallel.group_size = 4;
  cases.push_back(groups);
  TrainCase order = WithZero(GptCase(2, 2, 2));
  order.parallel.order = "tp-cp-ep-pp-dp";
  cases.push_back(order);
  return cases;
}

// Published sizes on as many ranks as their papers say, or fewer; a sample a micro-batch.
std::vector<PlanCase> PresetCases() {
  constexpr auto kOneFOneB = ScheduleKind::kOneFOneB;
  constexpr auto kInterleaved = ScheduleKind::kInterleaved;
  constexpr auto kFull = RecomputeKind::kFull;
  constexpr auto kSelective = RecomputeKind::kSelective;
  // name, model, tp, pp, vp, dp, micro-batches, seq, sp, schedule, recompute, zero
  return {
      {"gpt2_124m", "gpt2-124m", 1, 1, 1, 1, 8, 0, false, kOneFOneB, RecomputeKind::kNone, 0},
      {"gpt2_124m_dp4", "gpt2-124m", 2, 2, 1, 4, 8, 0, true, kOneFOneB, kSelective, 1},
      {"gpt3_175b_v12", "gpt3-175b", 8, 8, 12, 4, 24, 0, true, kInterleaved, kSelective, 1},
      {"gpt3_175b_full", "gpt3-175b", 8, 12, 1, 2, 24, 0, false, kOneFOneB, kFull, 1},
      {"llama3_405b_zero", "llama3-405b", 8, 16, 1, 8, 32, 0, true, kOneFOneB, kFull, 1},
  };
}

std::string NameOf(const PlanCase& c) { return c.name; }

// Collectives of one kind in all stages and layers: how many, and their bytes.
std::string CollectivesText(const Plan& plan) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>,
           std::pair<int64_t, int64_t>>
      kinds;
  for (const CommEntry& entry : CommEntries(plan)) {
    auto& [count, bytes] = kinds[{entry.phase, entry.op, entry.group, entry.label}];
    count += entry.count;
    bytes += entry.count * entry.payload_bytes;
  }
  std::string text;
  for (const auto& [kind, sums] : kinds) {
    const auto& [phase, op, group, label] = kind;
    absl::StrAppend(&text, "  ", phase, " ", op, " ", group, " ", label.empty() ? "-" : label, ": ",
                    sums.first, ", ", sums.second, " bytes\n");
  }
  return text;
}

std::string SummaryOf(const std::string& name, const Plan& plan) {
  int64_t peak = 0;
  for (const PlanClass& c : plan.classes) peak = std::max(peak, c.memory.peak);
  return absl::StrCat("plan ", name, "\n", CollectivesText(plan), "  peak ", peak, " bytes\n",
                      "  predicted ", plan.predicted_step_ns, " ns\n", "  normal form ",
                      Hash(NormalForm(plan)), "\n");
}

std::string LossesOf(const TrainCase& c) {
  const absl::StatusOr<TrainResult> result = TrainCaseFor(c, kLossSteps);
  MGC_CHECK(result.ok()) << NameOf(c) << ": " << result.status().ToString();
  std::string text = absl::StrCat("losses ", NameOf(c));
  for (double loss : result->losses) absl::StrAppend(&text, " ", absl::StrFormat("%a", loss));
  return text + "\n";
}

}  // namespace

std::vector<PinnedCase> PinnedCases() {
  std::vector<PinnedCase> pinned;
  for (const auto& cases : {SameLossCases(), MoreTrainCases()}) {
    for (const TrainCase& c : cases) pinned.push_back({NameOf(c), true, c, {}});
  }
  for (const auto& cases : {TinyPlanCases(), PresetCases(), LargePlanCases()}) {
    for (const PlanCase& c : cases) pinned.push_back({NameOf(c), false, {}, c});
  }
  return pinned;
}

PinFiles MakePinFiles() {
  PinFiles files;
  files.losses = absl::StrCat("instruction set ", InstructionSet(), "\n");
  for (const PinnedCase& pinned : PinnedCases()) {
    const absl::StatusOr<Plan> plan =
        pinned.trained ? CompileCase(pinned.train) : CompilePlanCase(pinned.plan);
    MGC_CHECK(plan.ok()) << pinned.name << ": " << plan.status().ToString();
    files.summaries += SummaryOf(pinned.name, *plan);
    if (pinned.trained) files.losses += LossesOf(pinned.train);
    absl::StrAppend(&files.text_hashes, pinned.name, " ", Hash(WithoutLines(PrintPlan(*plan))),
                    "\n");
  }
  return files;
}

std::string InstructionSet() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) return "x86-64-v4";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "x86-64-v3";
#endif
  return "baseline";
}

}  // namespace mgc
