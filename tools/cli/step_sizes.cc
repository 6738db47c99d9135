#include "tools/cli/step_sizes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/plan/fewer_micro_batches.h"
#include "passes/config/nearest_legal.h"
#include "passes/plan/time/predict_step.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/views/step_work.h"

namespace mgc {
namespace {

// `250K`, `1.5M`, `300`.
bool ParseCount(absl::string_view word, int64_t* count) {
  constexpr absl::string_view kSuffixes = "KMBT";
  constexpr double kMost = 1e18;
  double unit = 1;
  if (!word.empty()) {
    const size_t power =
        kSuffixes.find(absl::ascii_toupper(static_cast<unsigned char>(word.back())));
    if (power != absl::string_view::npos) {
      unit = std::pow(1000.0, static_cast<double>(power + 1));
      word.remove_suffix(1);
    }
  }
  double number = 0;
  if (!absl::SimpleAtod(word, &number) || !(number >= 0) || number * unit > kMost) return false;
  *count = static_cast<int64_t>(number * unit);
  return static_cast<double>(*count) == number * unit;
}

}  // namespace

absl::StatusOr<std::vector<StepSize>> ParseStepSizes(absl::string_view text, int64_t seq_length) {
  std::vector<StepSize> sizes;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" ,"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits(':', 1));
    StepSize size;
    if (!ParseCount(parts.first, &size.sample) || !ParseCount(parts.second, &size.batch)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", EscapeBytes(word), "` is no TOKENS:SAMPLES, as `10B:512`"));
    }
    size.sample /= seq_length;
    sizes.push_back(size);
  }
  if (sizes.empty()) return absl::InvalidArgumentError("names no size, as `0:256 10B:512` does");
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const StepSize& a, const StepSize& b) { return a.sample < b.sample; });
  return sizes;
}

Diagnostics CheckStepSizes(const std::vector<StepSize>& sizes, const Plan& plan) {
  constexpr char kLabel[] = "B10";
  Diagnostics violations;
  const int64_t piece = plan.global_batch_size / plan.num_micro_batches;
  if (sizes.front().sample > 0) {
    violations.Add({kLabel, absl::StrCat("steps have no size before sample ", sizes.front().sample),
                    absl::StrCat("0:", sizes.front().batch)});
  }
  int64_t largest = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [sample, batch] = sizes[i];
    largest = std::max(largest, batch);
    if (i > 0 && sizes[i - 1].sample == sample) {
      violations.Add({kLabel,
                      absl::StrCat("steps of ", sizes[i - 1].batch, " and of ", batch,
                                   " samples both begin at sample ", sample, ", of ",
                                   plan.seq_length, " tokens each"),
                      "thresholds a sample or more apart"});
    }
    if (batch >= 1 && batch % piece == 0) continue;
    violations.Add({kLabel,
                    absl::StrCat("a step of ", batch, " samples is not of whole micro-batches of ",
                                 piece, " samples on all data-parallel ranks"),
                    absl::StrCat(NearestMultiples(batch, piece), " samples")});
  }
  if (largest != plan.global_batch_size) {
    violations.Add({kLabel,
                    absl::StrCat("the largest step takes ", largest, " samples, the plan's ",
                                 plan.global_batch_size),
                    absl::StrCat("a plan made with --global-batch-size ", largest)});
  }
  return violations;
}

absl::StatusOr<std::vector<StepsFrom>> MakeSteps(const std::vector<StepSize>& sizes,
                                                 const Plan& plan, std::deque<Plan>* made) {
  const auto find = [&](int64_t batch) -> absl::StatusOr<const Plan*> {
    if (batch == plan.global_batch_size) return &plan;
    for (const Plan& known : *made) {
      if (known.global_batch_size == batch) return &known;
    }
    Plan& fewer = made->emplace_back(
        WithFewerMicroBatches(plan, batch / (plan.global_batch_size / plan.num_micro_batches)));
    MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(fewer));
    fewer.predicted_step_ns = StepNs(step, fewer.mesh, fewer.machine);
    return &fewer;
  };
  std::vector<StepsFrom> steps;
  for (const StepSize& size : sizes) {
    MGC_ASSIGN_OR_RETURN(const Plan* const its, find(size.batch));
    const PlanWork work = WorkOf(*its);
    steps.push_back({size.sample, its, {work.flops, work.device_seconds}});
  }
  return steps;
}

absl::optional<int> ReadSteps(absl::string_view text, const Plan& plan, absl::string_view command,
                              std::deque<Plan>* made, std::vector<StepsFrom>* steps) {
  const auto sizes = ParseStepSizes(text, plan.seq_length);
  Diagnostics errors;
  if (!sizes.ok()) {
    errors.Add({"F4",
                absl::StrCat("--step-batch-size-schedule ", EscapeBytes(text), ": ",
                             sizes.status().message()),
                absl::StrCat("\"0:", plan.global_batch_size, "\"")});
  }
  const Diagnostics violations = sizes.ok() ? CheckStepSizes(*sizes, plan) : Diagnostics();
  if (!errors.empty() || !violations.empty()) return Refuse(errors, violations, command);
  absl::StatusOr<std::vector<StepsFrom>> read = MakeSteps(*sizes, plan, made);
  if (!read.ok()) return Fail(read.status(), kExitMismatch);
  *steps = *std::move(read);
  return absl::nullopt;
}

}  // namespace mgc
