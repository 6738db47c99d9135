#include "tools/launch/launch_env.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* also;  // must be there too; may be null
};

constexpr Names kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"PMI", "PMI_RANK", "PMI_SIZE", nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
};

absl::StatusOr<int64_t> NumberIn(const Environment& environment, const char* name) {
  const absl::optional<std::string> text = environment(name);
  int64_t number = 0;
  if (text.has_value() && absl::SimpleAtoi(*text, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("the environment's ", name,
                   text.has_value() ? absl::StrCat(" is `", EscapeBytes(*text), "`")
                                    : std::string(" is missing"),
                   ", not a number of processes"));
}

// A task of Slurm finds the others by PMIx alone: without it MPI ends the process where it stands.
absl::Status CheckSlurm(const Environment& environment, const LaunchedBy& by) {
  if (!environment("SLURM_STEP_ID").has_value() || environment("PMIX_RANK").has_value() ||
      environment("OMPI_COMM_WORLD_RANK").has_value() || by.size == 1) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("Slurm has started ", by.size, " processes (", by.variable,
                   ") that have no PMIx to find each other by; start them by srun --mpi=pmix"));
}

}  // namespace

Environment SystemEnvironment() {
  return [](const std::string& name) -> absl::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return absl::nullopt;
    return std::string(value);
  };
}

absl::StatusOr<absl::optional<LaunchedBy>> FindLauncher(const Environment& environment) {
  for (const Names& names : kLaunchers) {
    if (!environment(names.rank).has_value()) continue;
    if (names.also != nullptr && !environment(names.also).has_value()) continue;
    LaunchedBy by;
    by.launcher = names.launcher;
    by.variable = names.size;
    MGC_ASSIGN_OR_RETURN(by.rank, NumberIn(environment, names.rank));
    MGC_ASSIGN_OR_RETURN(by.size, NumberIn(environment, names.size));
    MGC_RETURN_IF_ERROR(CheckSlurm(environment, by));
    return absl::optional<LaunchedBy>(std::move(by));
  }
  if (environment("TORCHELASTIC_RUN_ID").has_value() && environment("WORLD_SIZE").has_value() &&
      *environment("WORLD_SIZE") != "1") {
    return absl::FailedPreconditionError(
        "torchrun has started this process; start the run by mpirun or srun, or on one host by "
        "--nproc");
  }
  return absl::optional<LaunchedBy>();
}

}  // namespace mgc
