#include "graph/verify/meaning/meaning.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/ir/newton_schulz.h"
#include "graph/ir/optimizers.h"
#include "graph/verify/common/finding.h"
#include "graph/verify/meaning/check_model.h"
#include "graph/verify/meaning/gradient_sums.h"
#include "graph/verify/meaning/reference.h"
#include "graph/verify/meaning/run_plan.h"
#include "graph/verify/meaning/stated_numbers.h"
#include "graph/verify/meaning/step_inputs.h"
#include "graph/verify/shrink/leave_out.h"
#include "graph/verify/shrink/small_plans.h"

namespace mgc {
namespace {

constexpr uint64_t kFirstKey = 0x6d67632d70726f6f;
constexpr int kMostKeys = 4;

// A bound of the degree, as a quotient of polynomials, of any argument of a keyed function in the
// results of others. A denominator is the result of a call (a softmax' sum, a norm) or the token
// count: common denominators have no more factors than there are calls on a single device. An op
// multiplies what it is given, its own gradient included, at most kFactors times, so numerators
// grow by that much a node on the longest path. Muon's iteration, behind all of them, is a
// polynomial of the fifth degree, so many times.
int64_t DegreeBound(const Graph& model, const StepReference& reference) {
  constexpr int64_t kFactors = 16;
  int64_t bound = reference.calls + kFactors * 2 * static_cast<int64_t>(model.nodes().size());
  const bool iterates =
      std::any_of(model.inputs().begin(), model.inputs().end(), [](const GraphInput& input) {
        return input.kind == InputKind::kParam && !OptimizerOf(input.attrs).direction.empty();
      });
  for (int i = 0; iterates && i < kNewtonSchulzSteps; ++i) bound *= 5;
  return bound;
}

StepKind KindOf(const Plan& plan, bool keep_backward) {
  return {plan.num_micro_batches, ScalesLoss(plan), ParamsOf(GradientSums(plan)), keep_backward};
}

// Puts the first value of the forward or the backward pass that differs, if there is one, in front.
void Localize(const PlanRun& run, Diagnostics* found) {
  const absl::StatusOr<StepReference> all =
      EvaluateStep(run.small.model, run.inputs, run.key, KindOf(run.small, /*keep_backward=*/true));
  if (!all.ok()) return;
  Diagnostics located;
  RunPlan({run.real, run.small, run.inputs, *all, run.key, run.eval, /*localize=*/true}, &located);
  if (!located.Has("meaning_v6")) return;
  if (!found->Has("meaning_v6")) located.Append(*found);
  *found = located;
}

// One set of sizes under one key. False when a denominator was zero by chance: then nothing has
// been added, and another key has to be tried.
bool CheckOnce(const Plan& real, const Plan& small, uint64_t key, MeaningReport* report,
               Diagnostics* findings) {
  const StepInputs inputs(small.model, key);
  absl::StatusOr<StepReference> expected =
      EvaluateStep(small.model, inputs, key, KindOf(small, /*keep_backward=*/false));
  if (!expected.ok()) {
    findings->Add(FindingOf(expected.status(), "model", "meaning_v1"));
    return true;
  }
  if (expected->zero_denominators > 0) return false;
  report->calls += expected->calls;
  report->degree = std::max(report->degree, DegreeBound(small.model, *expected));
  if (!expected->gradients_hold) {
    findings->Add("meaning_v8", "model",
                  "the ops' gradient rules do not give the derivative of the loss");
  }
  for (const bool eval : {false, true}) {
    if (eval && !HasEvaluation(small)) continue;
    const PlanRun run{real, small, inputs, *expected, key, eval, /*localize=*/false};
    Diagnostics found;
    const RunCounts counts = RunPlan(run, &found);
    if (counts.zero_denominators > 0 && findings->empty()) return false;
    report->calls += counts.calls;
    ++report->runs;
    if (found.empty()) continue;
    if (found.Has("meaning_v4") || found.Has("meaning_v6")) Localize(run, &found);
    findings->Append(found);
  }
  return true;
}

}  // namespace

MeaningReport CheckMeaning(const Plan& plan, Diagnostics* findings) {
  MeaningReport report;
  const absl::Status sound = CheckModel(plan.model);
  if (!sound.ok()) findings->Add(FindingOf(sound, "model", "meaning_v1"));
  if (sound.ok()) CheckStated(plan, findings);
  if (!findings->empty()) return report;
  const Plan few = WithoutRepeatedLayers(plan);
  uint64_t key = kFirstKey;
  const absl::StatusOr<std::vector<Plan>> plans = SmallPlans(few, WorkOfStep);
  if (!plans.ok()) {
    findings->Add(FindingOf(plans.status(), "plan", "meaning_v1"));
    return report;
  }
  for (const Plan& small : *plans) {
    bool done = false;
    for (int tries = 0; tries < kMostKeys && !done; ++tries) {
      done = CheckOnce(few, small, ++key, &report, findings);
    }
    if (!done) {
      findings->Add("meaning_v1", "plan", "something is divided by zero under every key");
    }
    if (!findings->empty()) return report;
  }
  return report;
}

}  // namespace mgc
