#include "tools/cli/proof.h"

#include <iostream>

#include "graph/verify/verify.h"
#include "tools/cli/flags.h"
#include "tools/cli/output.h"

namespace mgc {

int ProveOrExplain(Plan* plan) {
  const VerifyReport report = VerifyPlan(*plan);
  if (report.ok()) {
    plan->verifier = kVerifierVersion;
    return kExitOk;
  }
  PrintErrors(report.findings);
  std::cerr << "error: the plan is not proved; docs/verify.md explains the labels\n";
  return kExitMismatch;
}

int EnsureProved(Plan* plan) {
  return plan->verifier == kVerifierVersion ? kExitOk : ProveOrExplain(plan);
}

}  // namespace mgc
