// `mgc-plan dims`: what of a model can be cut.

#include <utility>

#include "graph/base/status.h"
#include "passes/config/check_config.h"
#include "passes/search/class_layout.h"
#include "tools/cli/command.h"
#include "tools/cli/machine_source.h"
#include "tools/cli/model_source.h"
#include "tools/cli/output.h"
#include "tools/cli/parallel_flags.h"
#include "tools/views/dims.h"

namespace mgc {
namespace {

constexpr char kDims[] = "mgc-plan dims";

absl::StatusOr<std::string> ReportOf(const ModelSource& source, const ParallelConfig& config,
                                     const Machine& machine, bool json) {
  CompileOptions options;
  options.parallel = config;
  options.machine = machine;
  std::vector<std::string> notes;
  MGC_ASSIGN_OR_RETURN(const Graph graph, BuildGraph(source, config, /*vocab_multiple=*/1, &notes));
  PrintNotes(notes);
  MGC_ASSIGN_OR_RETURN(const std::vector<ClassChoice> classes,
                       ClassChoices(graph, source.dims, options));
  MGC_ASSIGN_OR_RETURN(const LayoutCost uncut,
                       CostOf(graph, source.dims, options, ClassStrategy({})));
  return json ? DimsJson(uncut, classes) : DimsText(uncut, classes);
}

}  // namespace

int DimsCommand(const Words& arguments) {
  Flags flags({kDims,
               "MODEL",
               "the dims of a model by class, and what tensor parallelism on each comes to",
               {"mgc-plan dims gpt2-tiny", "mgc-plan dims model.mgc --tp 4 --cluster h100x8"},
               "Dims that stand for one factor of some op are one class. Without --tp it is 2."});
  Words files;
  ParallelFlags given;
  absl::optional<std::string> cluster;
  bool json = false;
  flags.Arguments(1, 1, &files);
  flags.Switch("--json", "an object", &json);
  flags.Text("--cluster", "NAME", "the machines: a preset or a file", &cluster);
  AddMeshFlags(&flags, &given);
  AddTrainingFlags(&flags, &given);
  ParsedFlags parsed;
  if (const auto code = ParseOrEnd(&flags, arguments, &parsed)) return *code;
  CheckWords(&given, &parsed);
  if (given.strategy) {
    parsed.errors.Add({"F6", "--strategy says what dims lists: which dims are cut", "no strategy"});
  }
  if (files.size() != 1) return Refuse(parsed.errors, {}, kDims);
  absl::StatusOr<ModelSource> source = LoadModel(files[0]);
  if (!source.ok()) return Fail(source.status(), kExitBadModel);
  PrintNotes(source->notes);
  if (!given.tp) given.tp = 2;
  const ParallelConfig config = ConfigFor(*source, given);
  Diagnostics violations = CheckConfig(config, source->dims).violations;
  violations.Append(CheckGraphSizes(*source, config));
  violations = WithoutRulesOf(parsed.bad_flags, violations);
  if (!parsed.errors.empty() || !violations.empty()) {
    return Refuse(parsed.errors, violations, kDims);
  }
  const absl::StatusOr<Machine> machine = LoadMachine(cluster.value_or(kDefaultMachine));
  if (!machine.ok()) return Fail(machine.status(), kExitBadModel);
  const absl::StatusOr<std::string> report = ReportOf(*source, config, *machine, json);
  return report.ok() ? Finish(*report) : FailToCompile(report.status());
}

}  // namespace mgc
