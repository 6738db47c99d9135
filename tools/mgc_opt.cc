// mgc-opt: runs graph passes by name on the text of a graph.

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/check.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"
#include "passes/pass_table.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/parallel_flags.h"
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
          "printed."};
}

std::vector<absl::string_view> PassNames() {
  std::vector<absl::string_view> names;
  for (const PassEntry& pass : GraphPasses()) names.push_back(pass.name);
  return names;
}

std::string ListText() {
  std::vector<std::vector<std::string>> rows = {{"pass", "from", "to", ""}};
  for (const PassEntry& pass : GraphPasses()) {
    const bool any = pass.from == pass.to;
    rows.push_back({std::string(pass.name), any ? "any" : std::string(NameOf(pass.from)),
                    any ? "the same" : std::string(NameOf(pass.to)), std::string(pass.doc)});
  }
  return TableText(rows, {false, false, false, false});
}

int64_t KvHeads(const Graph& graph) {
  for (const Value& value : graph.values()) {
    for (const Dim& dim : value.type.dims) {
      if (dim.name == "kv_heads") return dim.size;
    }
  }
  return 1;
}

absl::StatusOr<Graph> Load(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadInput(path));
  MGC_ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, path == "-" ? "stdin" : path));
  MGC_RETURN_IF_ERROR(CheckGraph(graph));
  return graph;
}

absl::StatusOr<Graph> RunAll(Graph graph, const std::vector<std::string>& passes,
                             const PassOptions& options) {
  for (const std::string& pass : passes) {
    MGC_ASSIGN_OR_RETURN(graph, RunPass(pass, graph, options));
  }
  return graph;
}

int Main(const Words& arguments) {
  Flags parser(About());
  Words files;
  std::vector<std::string> passes;
  ParallelFlags given;
  absl::optional<std::string> output;
  bool list = false;
  parser.Arguments(0, 1, &files);
  parser.Choices("--pass", PassNames(), "a pass to run; may be repeated", &passes);
  parser.Text("-o,--output", "FILE", "where the graph goes (default: stdout)", &output);
  parser.Switch("--list", "print the passes and their levels", &list);
  AddMeshFlags(&parser, &given);
  AddScheduleFlags(&parser, &given);
  AddTrainingFlags(&parser, &given);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&parser, arguments, &parsed)) return *code;
  CheckWords(&given, &parsed);
  if (files.empty() && !list) parsed.errors.push_back({"F6", "missing argument: FILE", ""});
  if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, kCommand);
  if (list) return Finish(ListText());
  absl::StatusOr<Graph> graph = Load(files[0]);
  if (!graph.ok()) return Fail(graph.status(), kExitBadModel);
  PassOptions options;
  options.parallel = ConfigOf(given, 1);
  options.kv_heads = KvHeads(*graph);
  const absl::StatusOr<Graph> result = RunAll(*std::move(graph), passes, options);
  if (!result.ok()) return Fail(result.status(), kExitInfeasible);
  const absl::Status written = WriteAll({{output.value_or("-"), PrintGraph(*result)}});
  return written.ok() ? kExitOk : Fail(written, kExitFailed);
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::Main(mgc::Words(argv + 1, argv + argc)); }
