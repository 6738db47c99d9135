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
#include "passes/compile.h"
#include "passes/config/check_config.h"
#include "passes/config/strategy_text.h"
#include "tools/advice/neighbours.h"
#include "tools/cli/command.h"
#include "tools/cli/compile_flags.h"
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
  CompileFlags of_model;  // which stands in the plan
  AddModelFlags(&parser, &of_model);
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

absl::StatusOr<Plan> CompileAgain(const Plan& plan, const ModelSource& source,
                                  const ParallelConfig& config, const StrategySpec& strategy) {
  CompileOptions options;
  options.parallel = config;
  options.strategy = strategy;
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
  const ParallelConfig config = ConfigFor(source, recorded->flags);
  const absl::StatusOr<Plan> same = CompileAgain(plan, source, config, recorded->strategy);
  const double each = watch.Seconds();
  if (!same.ok() || HighestPeak(*same) != HighestPeak(plan) ||
      same->predicted_step_ns != plan.predicted_step_ns) {
    return None("the plan is not what its flags compile to, it was edited or made elsewhere");
  }
  MemoryAdvice advice;
  std::vector<std::string> left_out;
  NeighbourLimits limits;
  limits.fixed.precision = limits.ranks = false;
  for (const Neighbour& change : NeighboursOf(limits, config)) {
    if (!change.saves) continue;
    if (watch.Seconds() + each > static_cast<double>(seconds)) {
      left_out.push_back(change.change);
      continue;
    }
    const absl::StatusOr<Plan> other =
        CompileAgain(plan, source, change.config, recorded->strategy);
    if (!other.ok() || HighestPeak(*other) >= HighestPeak(plan)) continue;
    advice.options.push_back({change.change, HighestPeak(*other), other->predicted_step_ns});
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
