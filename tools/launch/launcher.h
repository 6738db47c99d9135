// Runs a plan's processes: one, several of this host, or the one of many that MPI has started.
//
// What a process does is `body`, a function from the world it is in to its exit code. Whoever
// launches watches: a run that does not come on ends with kExitWatchdog, one of whose processes
// dies with kExitFailed, both with one report that names the culprit; nothing hangs and nothing of
// the run is left. Errors that a process returns by EndRun are printed once, for all.

#ifndef MGC_TOOLS_LAUNCH_LAUNCHER_H_
#define MGC_TOOLS_LAUNCH_LAUNCHER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/plan/plan.h"
#include "runtime/comm/process_map.h"
#include "tools/launch/world.h"

namespace mgc {

inline constexpr int kExitWatchdog = 124;

struct LaunchOptions {
  std::string command;              // whose name what is said of the run begins with
  double watchdog_seconds = 60;     // that a run may stand still; 0: for ever
  std::vector<const Plan*> others;  // that steps change to, as ExecutorOptions has them, none twice
  // Where progress, the plan and logs of all processes but the first are left; empty: nowhere.
  std::string run_dir;
};

// All ranks in this process, on threads.
int RunHere(const Plan& plan, const LaunchOptions& options, const std::function<int(World&)>& body);

// The processes of `map`, forked from this one, which must have one thread only.
int RunForked(const Plan& plan, const ProcessMap& map, const LaunchOptions& options,
              const std::function<int(World&)>& body);

// Whether an error of a run is one that all of its processes find alike: a stop that they have
// agreed on, a loss that is not finite.
bool IsAlike(const absl::Status& why);

// Whether a run that goes on can end with this code, which it says in its own words; all others are
// of what it begins with.
bool IsOfRunning(int code);

// To be returned by `body`: the run ends with `code` because of `why` (World::end_run).
int EndRun(World& world, const absl::Status& why, int code);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_LAUNCHER_H_
