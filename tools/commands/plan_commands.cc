// `mgc-plan dot`, `mgc-plan html`, `mgc-plan diff` and `mgc-plan memory`.

#include <algorithm>
#include <utility>

#include "graph/base/status.h"
#include "tools/cli/command.h"
#include "tools/cli/memory_advice.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/plan_file.h"
#include "tools/cli/svg.h"
#include "tools/views/diff.h"
#include "tools/views/drawings/dot.h"
#include "tools/views/memory.h"
#include "tools/views/page/page.h"

namespace mgc {
namespace {

DotExpand ExpandOf(const std::string& word) {
  if (word == "none") return DotExpand::kNone;
  if (word == "layers") return DotExpand::kLayers;
  if (word == "stages") return DotExpand::kStages;
  return word == "all" ? DotExpand::kAll : DotExpand::kSegments;
}

int DiffTrouble(const absl::Status& status) { return Fail(status, 2); }

}  // namespace

int DotCommand(const Words& arguments) {
  constexpr char kCommand[] = "mgc-plan dot";
  Flags flags({kCommand,
               "PLAN",
               "a drawing for Graphviz: stages, layers, collectives; of a large plan an overview",
               {"mgc-plan dot tiny.plan -o tiny.dot --svg tiny.svg",
                "mgc-plan dot tiny.plan --expand stages"},
               ""});
  Words files;
  bool json = false;
  absl::optional<std::string> expand;
  absl::optional<std::string> output;
  absl::optional<std::string> svg;
  flags.Arguments(1, 1, &files);
  flags.Choice("--expand", {"none", "segments", "layers", "stages", "all"},
               "none: an overview, one box a rank class; segments: what stages run; with every "
               "layer or every stage by itself, or all (default: segments up to 4 stages, else "
               "none)",
               &expand);
  flags.Text("-o,--output", "FILE", "where the drawing goes (default: stdout)", &output);
  flags.Text("--svg", "FILE", "also render it, with Graphviz's dot where that is installed", &svg);
  flags.Switch("--json", "the drawing inside a JSON object with its size and what was collapsed",
               &json);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  std::vector<NamedPath> results = {{"-o", output.value_or("-")}};
  if (svg.has_value()) results.push_back({"--svg", *svg});
  if (const auto errors = CheckPaths({{"PLAN", files[0]}}, results); !errors.empty()) {
    return Refuse(errors, {}, kCommand);
  }
  const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  DotOptions options;
  if (expand.has_value()) options.expand = ExpandOf(*expand);
  const DotDrawing drawing = DrawPlan(*plan, options);
  PrintNotes(drawing.collapsed);
  std::vector<OutputFile> outputs = {{output.value_or("-"), json ? DotJson(drawing) : drawing.dot}};
  absl::Status missing;
  if (svg.has_value()) missing = AddSvg(drawing.dot, *svg, &outputs);
  absl::Status written = WriteAll(outputs);
  written.Update(missing);
  return written.ok() ? kExitOk : Fail(written, kExitFailed);
}

int HtmlCommand(const Words& arguments) {
  constexpr char kCommand[] = "mgc-plan html";
  Flags flags({kCommand,
               "PLAN",
               "a page for a browser: an overview, the predicted step, memory, instructions",
               {"mgc-plan html tiny.plan -o tiny.html"},
               "The page stands by itself: it fetches nothing."});
  Words files;
  absl::optional<std::string> output;
  flags.Arguments(1, 1, &files);
  flags.Text("-o,--output", "FILE", "where the page goes (default: stdout)", &output);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  const std::string path = output.value_or("-");
  if (const auto errors = CheckPaths({{"PLAN", files[0]}}, {{"-o", path}}); !errors.empty()) {
    return Refuse(errors, {}, kCommand);
  }
  const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const absl::StatusOr<std::string> page = PlanPage(*plan);
  if (!page.ok()) return Fail(page.status(), kExitFailed);
  const absl::Status written = WriteAll({{{path, *page}}});
  return written.ok() ? kExitOk : Fail(written, kExitFailed);
}

int DiffCommand(const Words& arguments) {
  constexpr char kCommand[] = "mgc-plan diff";
  Flags flags({kCommand,
               "PLAN PLAN",
               "what tells two plans apart",
               {"mgc-plan diff a.plan b.plan"},
               "Exits as diff(1) does: 0 the same, 1 different, 2 trouble."});
  Words files;
  bool json = false;
  flags.Arguments(2, 2, &files);
  flags.Switch("--json", "one JSON object", &json);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  const auto errors = CheckPaths({{"PLAN", files[0]}, {"PLAN", files[1]}}, {});
  if (!errors.empty()) return Refuse(errors, {}, kCommand);
  absl::StatusOr<Plan> left = ReadPlan(files[0]);
  if (!left.ok()) return DiffTrouble(left.status());
  absl::StatusOr<Plan> right = ReadPlan(files[1]);
  if (!right.ok()) return DiffTrouble(right.status());
  std::vector<ViewDifference> differences = DiffPlans(*left, *right);
  const absl::Status printed = WriteStdout(json ? DiffJson(differences) : DiffText(differences));
  if (!printed.ok()) return DiffTrouble(printed);
  return differences.empty() ? 0 : 1;
}

int MemoryCommand(const Words& arguments) {
  constexpr char kCommand[] = "mgc-plan memory";
  constexpr int64_t kAdviceSeconds = 20;
  Flags flags(
      {kCommand,
       "PLAN",
       "bytes of every rank class by purpose, what is alive at the peak, what lowers it",
       {"mgc-plan memory tiny.plan", "mgc-plan memory tiny.plan --json --advice-seconds 0"},
       "What lowers the peak is found by compiling the plan's model with other flags; these "
       "plans are not\nproved, mgc-compile does that."});
  Words files;
  bool all = false;
  bool json = false;
  absl::optional<int64_t> seconds;
  flags.Arguments(1, 1, &files);
  flags.Switch("--all", "classes that are alike each by itself", &all);
  flags.Switch("--json", "one JSON object instead of text", &json);
  flags.Integer("--advice-seconds",
                "how long to look for flags that lower the peak (default 20); 0: not at all",
                {0, 1 << 20}, "F3", &seconds);
  if (const auto code = ParseStrictly(&flags, arguments, kCommand)) return *code;
  const absl::StatusOr<Plan> plan = ReadPlan(files[0]);
  if (!plan.ok()) return Fail(plan.status(), kExitBadModel);
  const MemoryAdvice advice = AdviseMemory(*plan, seconds.value_or(kAdviceSeconds));
  PrintNotes(advice.notes);
  return Finish(json ? MemoryJson(*plan, advice) : MemoryText(*plan, advice, all));
}

}  // namespace mgc
