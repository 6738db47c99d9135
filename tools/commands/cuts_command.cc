// `mgc-plan cuts`: where a pipeline may cut a model that names no layers.

#include <utility>

#include "graph/base/status.h"
#include "passes/config/check_config.h"
#include "passes/cut_layers.h"
#include "tools/cli/command.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/views/cuts.h"

namespace mgc {
namespace {

constexpr char kCuts[] = "mgc-plan cuts";

absl::StatusOr<std::vector<CutPoint>> CutsOf(const ModelSource& source,
                                             const ParallelConfig& config, const Machine& machine) {
  std::vector<std::string> notes;
  MGC_ASSIGN_OR_RETURN(const Graph graph, BuildGraph(source, config, /*vocab_multiple=*/1, &notes));
  PrintNotes(notes);
  MGC_ASSIGN_OR_RETURN(const CutRequest request,
                       CutRequestOf(config, CheckConfig(config, source.dims).placement));
  return FindCuts(graph, request, machine);
}

// What forbids the configuration; and P18 where a model is cut between its layers.
Diagnostics CheckCuts(const ModelSource& source, const ParallelConfig& config) {
  Diagnostics violations = CheckConfig(config, source.dims).violations;
  violations.Append(CheckGraphSizes(source, config));
  if (source.dims.places.named && config.layout.cuts.empty()) {
    violations.Add({"P18",
                    "the model names its layers and is cut between them; mgc-plan show tells "
                    "where a plan is",
                    "--pipeline-layout of mgc-compile"});
  }
  return violations;
}

}  // namespace

int CutsCommand(const Words& arguments) {
  Flags flags({kCuts,
               "MODEL",
               "the places where a pipeline may cut a graph that names no layers",
               {"mgc-plan cuts model.mgc --pp 4", "mgc-plan cuts model.mgc --pp 2 --cuts y --all"},
               "A line for each place that fewer bytes cross than its neighbours; `cut` where "
               "--pp and --vp\ncut by cost, or where --cuts says. Bytes are those of a rank, which "
               "dp has cut and tp\nand cp may cut further."});
  Words files;
  ParallelFlags given;
  absl::optional<std::string> cluster;
  bool json = false;
  bool all = false;
  flags.Arguments(1, 1, &files);
  flags.Switch("--json", "a list of objects, of all places", &json);
  flags.Switch("--all", "all places, those too that more bytes cross", &all);
  flags.Text("--cluster", "NAME", "the machines: a preset or a file", &cluster);
  AddMeshFlags(&flags, &given);
  AddScheduleFlags(&flags, &given);
  AddTrainingFlags(&flags, &given);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&flags, arguments, &parsed)) return *code;
  CheckWords(&given, &parsed);
  if (files.size() != 1) return Refuse(parsed.errors, {}, kCuts);
  const absl::StatusOr<ModelSource> source = LoadModel(files[0]);
  if (!source.ok()) return Fail(source.status(), kExitBadModel);
  PrintNotes(source->notes);
  const ParallelConfig config = ConfigFor(*source, given);
  const Diagnostics violations = WithoutRulesOf(parsed.bad_flags, CheckCuts(*source, config));
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kCuts);
  }
  const absl::StatusOr<Machine> machine = LoadMachine(cluster.value_or(kDefaultMachine));
  if (!machine.ok()) return Fail(machine.status(), kExitBadModel);
  const absl::StatusOr<std::vector<CutPoint>> points = CutsOf(*source, config, *machine);
  if (!points.ok()) return FailToCompile(points.status());
  return Finish(json ? PlacesJson(*points) : PlacesText(*points, all));
}

}  // namespace mgc
