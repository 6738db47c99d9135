// The proof of a plan: no plan runs that has not passed it (docs/verify.md).
//
// It rests on the plan and the op table alone. No pass of the compiler takes part, so that a
// mistake of a pass cannot hide here.

#ifndef MGC_GRAPH_VERIFY_VERIFY_H_
#define MGC_GRAPH_VERIFY_VERIFY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"

namespace mgc {

// What this verifier calls itself in the header of a plan it has proved. Raised whenever it learns
// to refuse something.
inline constexpr int kVerifierVersion = 7;

struct VerifyReport {
  Diagnostics findings;
  // What was executed: runs of one step each, and calls of keyed functions in them (the N of the
  // bound); 0 when an earlier check has findings.
  int runs = 0;
  int64_t calls = 0;
  int64_t degree = 0;  // bound of the degree between two calls, D
  // Upper bound of the probability that a wrong plan passes at the sizes executed; 0 runs: 1.
  double miss_probability = 1;

  bool ok() const { return findings.empty(); }
};

// N^2 / 2 (D / p) (D / q), of the primes of graph/eval/models/residue.h: the probability that two
// different results of `calls` random functions of degree `degree` agree in both residues.
double MissProbability(int64_t calls, int64_t degree);

// Checks that the plan is sound (graph/plan/plan_check.h), then placement, order and memory, and,
// when these hold, meaning. Any plan gets an answer.
VerifyReport VerifyPlan(const Plan& plan);

// Proves the plan and notes so in `plan->verifier`; FailedPrecondition with all findings when it
// cannot.
absl::Status ProvePlan(Plan* plan);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_VERIFY_H_
