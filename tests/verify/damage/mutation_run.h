// Two training steps and an evaluation of a plan on threads, down to the last bit.

#ifndef MGC_TESTS_VERIFY_DAMAGE_MUTATION_RUN_H_
#define MGC_TESTS_VERIFY_DAMAGE_MUTATION_RUN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"

namespace mgc {

// Everything a user could see. Compared for equality: NaN equals nothing.
struct RunBits {
  std::map<std::string, double> reports;              // by step and name
  std::map<std::string, std::vector<float>> tensors;  // gradients of both steps, parameters
};

// Runs on `workers` threads in an order drawn from `shuffle`. Errors of the executor: a deadlock, a
// plan that cannot be loaded.
absl::StatusOr<RunBits> RunTwoSteps(const Plan& plan, int workers, uint64_t shuffle);

// Names what differs first; empty when all bits are equal.
std::string Difference(const RunBits& a, const RunBits& b);

}  // namespace mgc

#endif  // MGC_TESTS_VERIFY_DAMAGE_MUTATION_RUN_H_
