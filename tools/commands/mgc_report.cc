// mgc-report: a run as a page.

#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "tools/cli/command.h"
#include "tools/cli/gzip.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/report/run_log.h"
#include "tools/report/run_page.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-report";

CommandText About() {
  return {kCommand,
          "RUN [PLAN]",
          "a page about a run: its curves, measured against predicted times, its plan",
          {"mgc-report metrics.jsonl tiny.plan -o run.html",
           "mgc-report metrics.jsonl tiny.plan --trace timeline.json -o run.html"},
          "RUN is what mgc-run --metrics has written, or a folder with it as metrics.jsonl; - is "
          "stdin. The page\nstands by itself: a browser shows it without a network."};
}

struct ReportFlags {
  Words files;
  absl::optional<std::string> trace, output;
};

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

int Report(const ReportFlags& flags, const std::string& run) {
  absl::optional<Plan> plan;
  if (flags.files.size() > 1) {
    absl::StatusOr<Plan> read = ReadPlan(flags.files[1]);
    if (!read.ok()) return Fail(read.status(), kExitBadModel);
    plan = *std::move(read);
  }
  const absl::StatusOr<std::string> metrics = ReadInput(run);
  if (!metrics.ok()) return Fail(metrics.status(), kExitBadModel);
  const absl::StatusOr<RunLog> log = ParseRunLog(*metrics, run);
  if (!log.ok()) return Fail(log.status(), kExitBadModel);
  RunParts parts = {run, *log, plan.has_value() ? &*plan : nullptr, {}};
  if (flags.trace.has_value()) {
    absl::StatusOr<std::string> trace = ReadInput(*flags.trace);
    if (trace.ok()) trace = AsRead(*flags.trace, *std::move(trace));
    if (!trace.ok()) return Fail(trace.status(), kExitBadModel);
    absl::StatusOr<std::vector<LogRow>> timeline = ParseTimeline(*trace, *flags.trace);
    if (!timeline.ok()) return Fail(timeline.status(), kExitBadModel);
    parts.timeline = *std::move(timeline);
  }
  absl::StatusOr<std::string> page = RunPage(parts);
  if (!page.ok()) return Fail(page.status(), kExitFailed);
  const absl::Status written = WriteAll({{flags.output.value_or("-"), *std::move(page)}});
  return written.ok() ? int{kExitOk} : Fail(written, kExitFailed);
}

int Main(const Words& arguments) {
  Flags parser(About());
  ReportFlags flags;
  parser.Arguments(1, 2, &flags.files);
  parser.Text("--trace", "FILE", "a timeline of mgc-run --trace, whose last step is drawn",
              &flags.trace);
  parser.Text("-o,--output", "FILE", "the page (default: stdout)", &flags.output);
  if (const auto code = ParseStrictly(&parser, arguments, kCommand)) return *code;
  std::string run = flags.files[0];
  if (IsFolder(run)) absl::StrAppend(&run, "/metrics.jsonl");
  std::vector<NamedPath> inputs = {{"RUN", run}};
  if (flags.files.size() > 1) inputs.push_back({"PLAN", flags.files[1]});
  if (flags.trace.has_value()) inputs.push_back({"--trace", *flags.trace});
  const Diagnostics errors = CheckPaths(inputs, {{"-o", flags.output.value_or("-")}});
  if (!errors.empty()) return Refuse(errors, {}, kCommand);
  return Report(flags, run);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
