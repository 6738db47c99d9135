// mgc-opt: runs passes by name, from the text of a graph.

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/text/parser.h"
#include "passes/compile.h"
#include "passes/form_text.h"
#include "tools/cli/command.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/cli/strategy_source.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

constexpr char kCommand[] = "mgc-opt";

CommandText About() {
  return {kCommand,
          "[FILE]",
          "run passes on a graph in text form and print what comes out",
          {"mgc-opt model.mgc --pass simplify --pass differentiate",
           "mgc-opt training.mgc --pass shard --pass partition --tp 2 --sequence-parallel",
           "mgc-opt --list"},
          "Passes run in the order given; - is stdin. Without a pass the graph is checked and "
          "printed.\n--micro-batch-size and --seq-length set the sizes of a logical graph."};
}

std::string ListText() {
  std::vector<std::vector<std::string>> rows = {{"pass", "from", "to", ""}};
  for (const PassEntry& pass : AllPasses()) {
    rows.push_back({std::string(pass.name), std::string(NameOf(pass.from)),
                    std::string(NameOf(pass.to)), std::string(pass.doc)});
  }
  return TableText(rows, {false, false, false, false});
}

absl::StatusOr<Graph> Load(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadInput(path));
  MGC_ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, path == "-" ? "stdin" : path));
  MGC_RETURN_IF_ERROR(CheckGraph(graph));
  return graph;
}

// A logical graph at the sizes that flags give, and the configuration; what binds it to others.
Diagnostics TakeSizes(const ParallelFlags& given, Graph* graph, ParallelConfig* config) {
  *config = ConfigOf(given, 1);
  if (graph->level() != Level::kLogical) return {};
  const ModelSource source = SourceOf(*graph);
  *config = ConfigFor(source, given);
  if (!given.micro_batch_size && !given.seq_length) return {};
  Diagnostics violations = CheckGraphSizes(source, *config);
  if (!violations.empty()) return violations;
  std::vector<std::string> notes;
  *graph = *BuildGraph(source, *config, /*vocab_multiple=*/1, &notes);
  PrintNotes(source.notes);
  PrintNotes(notes);
  return {};
}

// The text of what the passes make of a graph.
absl::StatusOr<std::string> RunAll(const Graph& graph, const std::vector<std::string>& passes,
                                   const ParallelConfig& config, StrategySpec strategy) {
  MGC_ASSIGN_OR_RETURN(PassContext context, ContextOf(config, graph));
  context.strategy = std::move(strategy);
  PassForm form = StepGraphs{graph, absl::nullopt, {}};
  for (const std::string& pass : passes) {
    MGC_ASSIGN_OR_RETURN(form, RunPassByName(AllPasses(), pass, std::move(form), context, {}));
  }
  return PrintForm(form);
}

int Main(const Words& arguments) {
  Flags parser(About());
  Words files;
  std::vector<std::string> passes;
  ParallelFlags given;
  absl::optional<std::string> output;
  bool list = false;
  parser.Arguments(0, 1, &files);
  parser.Choices("--pass", PassNames(AllPasses()), "a pass to run; may be repeated", &passes);
  parser.Text("-o,--output", "FILE", "where the graph goes (default: stdout)", &output);
  parser.Switch("--list", "print the passes and their levels", &list);
  AddMeshFlags(&parser, &given);
  AddScheduleFlags(&parser, &given);
  AddTrainingFlags(&parser, &given);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  CheckWords(&given, &parsed);
  if (files.empty() && !list) parsed.errors.Add({"F6", "missing argument: FILE", ""});
  if (!files.empty()) {
    std::vector<NamedPath> inputs = {{"FILE", files[0]}};
    if (const auto path = StrategyPath(given.strategy)) inputs.push_back({"--strategy", *path});
    parsed.errors.Append(CheckPaths(inputs, {{"-o", output.value_or("-")}}));
  }
  if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kCommand);
  if (list) return Finish(ListText());
  absl::StatusOr<Graph> graph = Load(files[0]);
  if (!graph.ok()) return Fail(graph.status(), kExitBadModel);
  absl::StatusOr<StrategySpec> strategy = LoadStrategy(given.strategy);
  if (!strategy.ok()) return Fail(strategy.status(), kExitBadModel);
  ParallelConfig config;
  if (const Diagnostics bound = TakeSizes(given, &*graph, &config); !bound.empty()) {
    return Refuse({}, bound, kCommand);
  }
  const absl::StatusOr<std::string> text = RunAll(*graph, passes, config, *std::move(strategy));
  if (!text.ok()) {
    const bool ours = absl::IsInternal(text.status());
    return Fail(text.status(), ours ? kExitFailed : kExitInfeasible);
  }
  const absl::Status written = WriteAll({{output.value_or("-"), *text}});
  return written.ok() ? kExitOk : Fail(written, kExitFailed);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunMain(argc, argv, mgc::Main); }
