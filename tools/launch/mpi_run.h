// One process of a run that MPI's launcher has started: it prepares like all others, agrees with
// them on what is run, runs its ranks, and watches.

#ifndef MGC_TOOLS_LAUNCH_MPI_RUN_H_
#define MGC_TOOLS_LAUNCH_MPI_RUN_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "kernels/simd_level.h"
#include "tools/launch/agreement.h"
#include "tools/launch/launch_env.h"
#include "tools/launch/launcher.h"
#include "tools/launch/world.h"

namespace mgc {

// What a process has prepared: code kExitOk and a plan, or how the command ends.
struct Prepared {
  int code = 0;
  const Plan* plan = nullptr;  // null: the command ends with `code`
  Terms terms;                 // that all processes must agree on
  KernelHost kernels_on = KernelHost::kCpu;
  // The best of this process's; all use the least of all.
  SimdLevel simd_level = SimdLevel::kBaseline;
  LaunchOptions options;
  int64_t ranks_per_process = 0;
  bool library_all_reduces = false;  // whether MPI's own do them
};

struct MpiBody {
  std::string command;  // as LaunchOptions has it
  // Reads what is run. What it prints is shown of one process only.
  std::function<Prepared()> prepare;
  // Proves the plan if need be, in the first process; an exit code.
  std::function<int()> prove;
  std::function<int(World&)> run;
};

// Joins the other processes and does all that; the exit code.
int RunUnderMpi(const LaunchedBy& by, const MpiBody& body);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_MPI_RUN_H_
