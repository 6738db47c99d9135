// `mgc-plan roofline`: what kernels took, beside what a machine allows.

#include <utility>

#include "graph/base/status.h"
#include "tools/cli/command.h"
#include "tools/cli/gzip.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/views/drawings/read_timeline.h"
#include "tools/views/roofline/roofline.h"

namespace mgc {
namespace {

absl::StatusOr<Timeline> TimelineAt(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(std::string content, ReadInput(path));
  MGC_ASSIGN_OR_RETURN(const std::string text, AsRead(path, std::move(content)));
  return ReadTimeline(text, path);
}

}  // namespace

int RooflineCommand(const Words& arguments) {
  constexpr char kCommand[] = "mgc-plan roofline";
  Flags flags(
      {kCommand,
       "PLAN TIMELINE",
       "what kernels took, beside the least that the machine allows for their flops and bytes",
       {"mgc-plan roofline tiny.plan timeline.json",
        "mgc-plan roofline tiny.plan timeline.json --cluster h100x8 --json"},
       "TIMELINE is what mgc-run --trace has written of a run of PLAN. Calls and times are "
       "of all its ranks\nand steps; shapes are those of one rank."});
  Words files;
  absl::optional<std::string> cluster;
  bool all = false;
  bool json = false;
  flags.Arguments(2, 2, &files);
  flags.Text("--cluster", "NAME", "whose limits: a preset or a file (default: the plan's machine)",
             &cluster);
  flags.Switch("--all", "every kernel (default: the 20 that lose most)", &all);
  flags.Switch("--json", "one JSON object, of every kernel", &json);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  const auto errors = CheckPaths({{"PLAN", files[0]}, {"TIMELINE", files[1]}}, {});
  if (!errors.empty()) return Refuse(errors, {}, kCommand);
  const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const absl::StatusOr<Timeline> timeline = TimelineAt(files[1]);
  if (!timeline.ok()) return Fail(timeline.status(), kExitBadModel);
  absl::StatusOr<Machine> machine = plan->machine;
  if (cluster.has_value()) machine = LoadMachine(*cluster);
  if (!machine.ok()) return Fail(machine.status(), kExitBadModel);
  const auto rows = Roofline(*plan, *machine, *timeline);
  if (!rows.ok()) return Fail(rows.status(), kExitBadModel);
  return Finish(json ? RooflineJson(*machine, *rows) : RooflineText(*machine, *rows, all));
}

}  // namespace mgc
