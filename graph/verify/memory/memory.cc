#include "graph/verify/memory/memory.h"

#include <string>

#include "graph/verify/memory/memory_internal.h"

namespace mgc {

void CheckMemory(const Plan& plan, Diagnostics* findings) {
  const StepTables train(plan, false);
  const StepTables eval(plan, true);
  for (const StepTables* tables : {&train, &eval}) {
    const std::string too_long = TooLong(*tables);
    if (too_long.empty()) continue;
    findings->Add("memory_v5", tables->eval ? "evaluation" : "training", too_long);
    return;
  }
  for (const StepTables* tables : {&train, &eval}) {
    CheckRegions(*tables, findings);
    CheckValues(*tables, findings);
  }
  CheckNumbers(plan, train, eval, findings);
}

}  // namespace mgc
