#include "tools/cli/proof.h"

#include <iostream>

#include "graph/verify/verify.h"
#include "tools/cli/flags.h"

namespace mgc {

void PrintFindings(const Findings& findings) {
  for (const Finding& finding : findings.list()) {
    std::cerr << "error: " << ToString(finding) << "\n";
  }
  if (findings.left_out() > 0) {
    std::cerr << "note: " << findings.left_out() << " more of the same kinds\n";
  }
}

int ProveOrExplain(Plan* plan) {
  const VerifyReport report = VerifyPlan(*plan);
  if (report.ok()) {
    plan->verifier = kVerifierVersion;
    return kExitOk;
  }
  PrintFindings(report.findings);
  std::cerr << "error: the plan is not proved; docs/verify.md explains the labels\n";
  return kExitMismatch;
}

int EnsureProved(Plan* plan) {
  return plan->verifier == kVerifierVersion ? kExitOk : ProveOrExplain(plan);
}

}  // namespace mgc
