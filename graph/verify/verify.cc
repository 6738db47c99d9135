#include "graph/verify/verify.h"

#include <algorithm>

#include "graph/eval/models/residue.h"
#include "graph/plan/plan_check.h"
#include "graph/verify/meaning/meaning.h"
#include "graph/verify/memory/memory.h"
#include "graph/verify/order/order.h"
#include "graph/verify/placement/placement.h"

namespace mgc {

double MissProbability(int64_t calls, int64_t degree) {
  const double n = static_cast<double>(calls);
  const double d = static_cast<double>(degree);
  return std::min(1.0, n * n / 2 * (d / static_cast<double>(FirstField::kPrime)) *
                           (d / static_cast<double>(SecondField::kPrime)));
}

VerifyReport VerifyPlan(const Plan& plan) {
  VerifyReport report;
  report.findings.Append(FindPlanViolations(plan));
  if (!report.ok()) return report;
  CheckPlacement(plan, &report.findings);
  CheckOrder(plan, &report.findings);
  CheckMemory(plan, &report.findings);
  if (!report.ok()) return report;
  const MeaningReport meaning = CheckMeaning(plan, &report.findings);
  report.runs = meaning.runs;
  report.calls = meaning.calls;
  report.degree = meaning.degree;
  if (meaning.runs > 0) report.miss_probability = MissProbability(meaning.calls, meaning.degree);
  return report;
}

absl::Status ProvePlan(Plan* plan) {
  const VerifyReport report = VerifyPlan(*plan);
  if (!report.ok()) return report.findings.ToStatus(absl::StatusCode::kFailedPrecondition);
  plan->verifier = kVerifierVersion;
  return absl::OkStatus();
}

}  // namespace mgc
