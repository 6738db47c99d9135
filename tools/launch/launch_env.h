// Which launcher has started this process, from the environment it leaves.
//
// Open MPI and Slurm may both speak where one runs inside of the other: MPI's words win. A batch
// script has variables of Slurm too, though nothing started it as one of several: only a step's
// process has a number. Whatever says that there are several processes is believed, so that a run
// is never silently one of many that each do the whole.

#ifndef MGC_TOOLS_LAUNCH_LAUNCH_ENV_H_
#define MGC_TOOLS_LAUNCH_LAUNCH_ENV_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace mgc {

struct LaunchedBy {
  std::string launcher;  // `Open MPI`, `PMI`, `Slurm`
  std::string variable;  // that says so
  int64_t rank = 0;
  int64_t size = 1;
};

// The value of a variable, or nothing.
using Environment = std::function<absl::optional<std::string>(const std::string& name)>;
Environment SystemEnvironment();

// Who launched this process as one of several; nothing when nobody did. FailedPrecondition for
// launchers that start no MPI, InvalidArgument for variables that are no numbers.
absl::StatusOr<absl::optional<LaunchedBy>> FindLauncher(const Environment& environment);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_LAUNCH_ENV_H_
