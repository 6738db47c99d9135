// `mgc-run --check`: resolves a plan as a run would, and runs nothing.

#ifndef MGC_TOOLS_CLI_CHECK_RUN_H_
#define MGC_TOOLS_CLI_CHECK_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/plan/plan.h"
#include "kernels/kernel.h"
#include "tools/cli/run_flags.h"

namespace mgc {

// What a plan comes to for all of its ranks in one process or, of a run with one rank a process,
// for one.
struct ResolvedRanks {
  absl::optional<int64_t> rank;  // none: all
  int64_t world_size = 0;
  std::vector<int64_t> classes;  // of these ranks
  std::vector<int64_t> stages;   // of these classes
  int64_t calls = 0;             // of a training step, of all these ranks
  int64_t kernels = 0;
  int64_t groups = 0;  // with one of these ranks
  // To and from other processes, and with how many of these this one exchanges.
  int64_t channels = 0;
  int64_t peers = 0;
  int64_t arena_bytes = 0;      // of all these ranks
  int64_t workspace_bytes = 0;  // of one thread
};

// Everything that Executor::Create does but for memory, threads and connections; its errors.
absl::StatusOr<ResolvedRanks> ResolveRanks(const Plan& plan, const KernelList& kernels,
                                           absl::optional<int64_t> rank);

// A line for people.
std::string ResolvedLine(const ResolvedRanks& resolved);
// The same as a JSON object.
std::string ResolvedJson(const ResolvedRanks& resolved);

// Does what `--check` asks for and prints the line; the command's exit code. F3: a rank that the
// plan has not.
int CheckRun(const Plan& plan, const RunFlags& flags, const KernelList& kernels,
             absl::string_view command);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_CHECK_RUN_H_
