// Numbers that a step leaves for the next one, beside parameters and moments (PlanClass::carried).

#ifndef MGC_RUNTIME_STATE_CARRIED_H_
#define MGC_RUNTIME_STATE_CARRIED_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/run/executor.h"

namespace mgc {

// By name.
using CarriedNumbers = std::map<std::string, double>;

// Puts those that the plan carries on every rank here; others are left aside.
void PutCarried(const CarriedNumbers& numbers, Executor& executor);

// Those of the plan, in all processes alike; every process calls this.
absl::StatusOr<CarriedNumbers> GetCarried(const Executor& executor);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_CARRIED_H_
