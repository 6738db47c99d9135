// mgc-plan: looks at a plan, each subcommand one view of it.

#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/plan/plan.h"
#include "passes/plan/time/predict_step.h"
#include "tools/cli/command.h"
#include "tools/cli/output.h"
#include "tools/cli/plan_file.h"
#include "tools/views/comm.h"
#include "tools/views/drawings/timeline.h"
#include "tools/views/instructions.h"
#include "tools/views/show.h"

namespace mgc {
namespace {

absl::StatusOr<std::string> TraceText(const Plan& plan) {
  MGC_ASSIGN_OR_RETURN(const SimulatedStep step, PredictStep(plan));
  return TimelineJson(PredictedTimeline(plan, step, 1));
}

// Text for people, folded or, with `all`, with everything by itself.
using TextFn = absl::StatusOr<std::string> (*)(const Plan& plan, bool all);
using JsonFn = absl::StatusOr<std::string> (*)(const Plan& plan);

// A view that takes nothing but a plan.
struct Report {
  const char* name;
  const char* summary;
  bool folds;
  TextFn text;
  JsonFn json;
};

template <std::string (*View)(const Plan&)>
absl::StatusOr<std::string> Json(const Plan& plan) {
  return View(plan);
}
template <std::string (*View)(const Plan&, bool)>
absl::StatusOr<std::string> Folded(const Plan& plan, bool all) {
  return View(plan, all);
}
template <std::string (*View)(const Plan&)>
absl::StatusOr<std::string> Whole(const Plan& plan, bool /*all*/) {
  return View(plan);
}

constexpr std::array<Report, 4> kReports = {{
    {"show", "the plan at a glance: mesh, stages, parameters, memory, order", true,
     Folded<ShowText>, Json<ShowJson>},
    {"comm", "every collective and transfer: count, group, bytes", true, Folded<CommText>,
     Json<CommJson>},
    {"instructions", "segments, calls and actions as the runtime runs them", false,
     Whole<InstructionsText>, Json<InstructionsJson>},
    {"trace", "the simulated step as a timeline for Perfetto or chrome://tracing", false,
     [](const Plan& plan, bool /*all*/) { return TraceText(plan); }, TraceText},
}};

int RunReport(const Report& report, const Words& arguments) {
  const std::string command = absl::StrCat("mgc-plan ", report.name);
  Flags flags({command,
               "PLAN",
               report.summary,
               {command + " tiny.plan", command + " tiny.plan --json"},
               ""});
  Words files;
  bool all = false;
  bool json = false;
  flags.Arguments(1, 1, &files);
  if (report.folds) {
    flags.Switch("--all", "stages, layers and ranks that are alike each by themselves", &all);
  }
  flags.Switch("--json", "one JSON object instead of text (a timeline always is one)", &json);
  if (const auto code = ParseStrictly(&flags, arguments, command)) return *code;
  const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const absl::StatusOr<std::string> text = json ? report.json(*plan) : report.text(*plan, all);
  if (!text.ok()) return Fail(text.status(), kExitFailed);
  return Finish(*text);
}

// A subcommand with flags of its own.
struct Subcommand {
  const char* name;
  const char* summary;
  int (*run)(const Words&);
};

constexpr std::array<Subcommand, 10> kSubcommands = {{
    {"memory", "bytes of every rank class by purpose, what is alive at the peak, what lowers it",
     MemoryCommand},
    {"roofline", "what kernels took in a run, beside what the machine allows", RooflineCommand},
    {"dot", "a drawing for Graphviz", DotCommand},
    {"html", "a page for a browser: overview, predicted step, memory, instructions", HtmlCommand},
    {"explain", "why a value lies where it does, and what is communicated for it", ExplainCommand},
    {"schedule", "the order of actions on every pipeline rank; also from flags alone",
     ScheduleCommand},
    {"groups", "the ranks that communicate together; also from flags alone", GroupsCommand},
    {"diff", "what tells two plans apart", DiffCommand},
    {"dims", "of a model: its dims by class, and what cutting each comes to", DimsCommand},
    {"cuts", "of a model that names no layers: where a pipeline may cut it", CutsCommand},
}};

std::string Overview() {
  std::string text =
      "mgc-plan: look at a plan\n\nExamples:\n"
      "  mgc-plan show tiny.plan\n"
      "  mgc-plan comm tiny.plan --json\n"
      "  mgc-plan groups --world-size 16 --tp 2 --pp 4\n\n"
      "Usage: mgc-plan SUBCOMMAND [PLAN] [flags]\n\n";
  for (const Report& report : kReports) {
    absl::StrAppend(&text, "  ", report.name, "\n      ", report.summary, "\n");
  }
  for (const Subcommand& subcommand : kSubcommands) {
    absl::StrAppend(&text, "  ", subcommand.name, "\n      ", subcommand.summary, "\n");
  }
  return absl::StrCat(text, "\nFlags of each: mgc-plan SUBCOMMAND --help\n");
}

int Main(const Words& arguments) {
  if (arguments.empty()) {
    std::cerr << Overview();
    return kExitUsage;
  }
  const std::string& name = arguments[0];
  const Words rest(arguments.begin() + 1, arguments.end());
  std::vector<absl::string_view> names;
  for (const Report& report : kReports) {
    if (name == report.name) return RunReport(report, rest);
    names.push_back(report.name);
  }
  for (const Subcommand& subcommand : kSubcommands) {
    if (name == subcommand.name) return subcommand.run(rest);
    names.push_back(subcommand.name);
  }
  if (name == "-h" || name == "--help") return Finish(Overview());
  if (name == "--version") return Finish(VersionText());
  std::cerr << "error: unknown subcommand " << EscapeBytes(name) << DidYouMean(name, names)
            << " [F1]\nall subcommands: mgc-plan --help\n";
  return kExitUsage;
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
