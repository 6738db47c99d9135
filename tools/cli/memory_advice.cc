#include "tools/cli/memory_advice.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/compile.h"
#include "passes/config/check_config.h"
#include "passes/config/strategy_text.h"
#include "tools/cli/command.h"
#include "tools/cli/model_source.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {
namespace {

// What a plan records of how it was made.
struct Recorded {
  ParallelFlags flags;
  StrategySpec strategy = DefaultStrategy();
};

absl::StatusOr<Recorded> RecordedBy(const PlanOptions& options) {
  Words words;
  std::string rows;
  for (const auto& [name, value] : options) {
    if (absl::StartsWith(name, "strategy.")) absl::StrAppend(&rows, value, "\n");
    const bool flag = absl::StartsWith(name, "--") && name != "--cluster" && name != "--strategy";
    if (!flag) continue;
    words.push_back(name);
    if (!value.empty()) words.push_back(value);
  }
  Recorded recorded;
  Flags parser({"", "", "", {}, ""});
  AddMeshFlags(&parser, &recorded.flags);
  AddScheduleFlags(&parser, &recorded.flags);
  AddTrainingFlags(&parser, &recorded.flags);
  ParsedFlags parsed = parser.Parse(words);
  CheckWords(&recorded.flags, &parsed);
  MGC_RETURN_IF_ERROR(parsed.errors.ToStatus());
  // What came to nothing when the plan was made was allowed to.
  recorded.flags.allow_replicated = true;
  if (!rows.empty()) {
    MGC_ASSIGN_OR_RETURN(recorded.strategy,
                         ParseStrategy(absl::StrCat("strategy @recorded {\n", rows, "}\n"), ""));
  }
  return recorded;
}

struct Change {
  std::string flags;  // as a user would say it
  ParallelFlags made;
};

// Changes of single flags, and of what they bring along.
class Changes {
 public:
  Changes(const ParallelFlags& flags, const ParallelConfig& config)
      : flags_(flags), config_(config) {}

  std::vector<Change> Run() {
    AddRecomputation();
    AddSwitches();
    AddSchedule();
    AddDivision("--pp", config_.pp, &ParallelFlags::pp);
    AddDivision("--tp", config_.tp, &ParallelFlags::tp);
    return std::move(changes_);
  }

 private:
  ParallelFlags& Add(std::string flags) {
    changes_.push_back({std::move(flags), flags_});
    return changes_.back().made;
  }

  void AddRecomputation() {
    if (config_.recompute == RecomputeKind::kNone) {
      Add("--recompute selective").recompute = "selective";
    }
    if (config_.recompute != RecomputeKind::kFull) Add("--recompute full").recompute = "full";
  }

  void AddSwitches() {
    if (DataParallelSize(config_) > 1 && config_.zero < 3) {
      const std::string level = absl::StrCat(config_.zero + 1);
      Add("--zero " + level).zero = level;
    }
    if (config_.tp > 1 && !config_.sequence_parallel) {
      Add("--sequence-parallel").sequence_parallel = true;
    }
    if (config_.compute_type == DType::kF32) Add("--bf16").bf16 = true;
  }

  void AddSchedule() {
    if (const int64_t size = config_.micro_batch_size; size > 1) {
      const int64_t smaller = size % 2 == 0 ? size / 2 : 1;
      Add(absl::StrCat("--micro-batch-size ", smaller)).micro_batch_size = smaller;
    }
    if (config_.schedule == ScheduleKind::kGpipe) Add("--schedule 1f1b").schedule = "1f1b";
    if (config_.schedule == ScheduleKind::kInterleaved) {
      ParallelFlags& flags = Add("--schedule 1f1b --vp 1");
      flags.schedule = "1f1b";
      flags.vp = 1;
      flags.group_size.reset();
    }
  }

  // Twice as many ranks along an axis, taken from dp where that is even.
  void AddDivision(const char* name, int64_t size,
                   absl::optional<int64_t> ParallelFlags::*of_flags) {
    std::string text = absl::StrCat(name, " ", 2 * size);
    const bool from_dp = DataParallelSize(config_) % 2 == 0;
    const int64_t world = from_dp ? config_.world_size : 2 * config_.world_size;
    if (!from_dp) absl::StrAppend(&text, " --world-size ", world);
    ParallelFlags& flags = Add(std::move(text));
    flags.*of_flags = 2 * size;
    flags.world_size = world;
  }

  const ParallelFlags& flags_;
  const ParallelConfig& config_;
  std::vector<Change> changes_;
};

absl::StatusOr<Plan> CompileAgain(const Plan& plan, const ModelSource& source,
                                  const Recorded& recorded) {
  CompileOptions options;
  options.parallel = ConfigFor(source, recorded.flags);
  options.strategy = recorded.strategy;
  options.machine = plan.machine;
  options.run.check = false;  // the model has been checked, and the passes are ours
  Diagnostics violations = CheckConfig(options.parallel, source.dims).violations;
  violations.Append(CheckGraphSizes(source, options.parallel));
  MGC_RETURN_IF_ERROR(violations.ToStatus());
  std::vector<std::string> notes;
  MGC_ASSIGN_OR_RETURN(const Graph graph,
                       BuildGraph(source, options.parallel, /*vocab_multiple=*/1, &notes));
  return Compile(graph, source.dims, options);
}

// Seconds since it was made.
class Watch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

MemoryAdvice None(absl::string_view why) {
  MemoryAdvice advice;
  advice.notes.push_back(absl::StrCat("nothing is tried that would lower the peak: ", why));
  return advice;
}

}  // namespace

MemoryAdvice AdviseMemory(const Plan& plan, int64_t seconds) {
  if (seconds == 0) return {};
  absl::StatusOr<Recorded> recorded = RecordedBy(plan.options);
  if (!recorded.ok()) return None("the plan does not record the flags that it was made with");
  const ModelSource source = SourceOf(plan.model);
  const Watch watch;
  const absl::StatusOr<Plan> same = CompileAgain(plan, source, *recorded);
  const double each = watch.Seconds();
  if (!same.ok() || HighestPeak(*same) != HighestPeak(plan) ||
      same->predicted_step_ns != plan.predicted_step_ns) {
    return None("the plan is not what its flags compile to, it was edited or made elsewhere");
  }
  MemoryAdvice advice;
  std::vector<std::string> left_out;
  const ParallelConfig config = ConfigFor(source, recorded->flags);
  for (const Change& change : Changes(recorded->flags, config).Run()) {
    if (watch.Seconds() + each > static_cast<double>(seconds)) {
      left_out.push_back(change.flags);
      continue;
    }
    const absl::StatusOr<Plan> other =
        CompileAgain(plan, source, {change.made, recorded->strategy});
    if (!other.ok() || HighestPeak(*other) >= HighestPeak(plan)) continue;
    advice.options.push_back({change.flags, HighestPeak(*other), other->predicted_step_ns});
  }
  std::stable_sort(advice.options.begin(), advice.options.end(),
                   [](const MemoryOption& a, const MemoryOption& b) { return a.peak < b.peak; });
  if (!left_out.empty()) {
    advice.notes.push_back(absl::StrCat(
        "not tried within ", seconds, " s, see --advice-seconds: ", absl::StrJoin(left_out, ", ")));
  }
  return advice;
}

}  // namespace mgc
