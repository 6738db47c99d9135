#include "tools/cli/model_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/ir/model_layers.h"
#include "graph/text/parser.h"
#include "passes/compile.h"
#include "passes/config/nearest_legal.h"
#include "passes/graph/keep_parameters.h"
#include "passes/graph/quantize.h"
#include "passes/graph/resize.h"
#include "tools/cli/output.h"
#include "tools/cli/plan_file.h"

namespace mgc {
namespace {

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Violations of the level with the places where the text defines their values.
Diagnostics InText(const Diagnostics& violations, const std::string& file,
                   const ValuePlaces& places) {
  Diagnostics located;
  for (Diagnostic violation : violations) {
    const auto place = places.find(absl::StripPrefix(violation.place, "%"));
    if (place != places.end()) {
      violation.place = absl::StrCat(file, ":", place->second.line, ":", place->second.column, ": ",
                                     violation.place);
    }
    located.Add(std::move(violation));
  }
  located.LeaveOut(violations.left_out());
  return located;
}

absl::StatusOr<ModelSource> LoadGraph(const std::string& name) {
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadInput(name));
  ModelSource source;
  const std::string file = name == "-" ? "stdin" : name;
  MGC_ASSIGN_OR_RETURN(source.graph, ParseGraph(text, file, &source.places));
  if (source.graph->level() != Level::kLogical) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(name), ": the graph is of level ",
                                                   NameOf(source.graph->level()),
                                                   ", a model is of level logical"));
  }
  MGC_RETURN_IF_ERROR(
      InText(FindViolations(*source.graph), EscapeBytes(file), source.places).ToStatus());
  ModelSource named = SourceOf(*source.graph);
  named.places = std::move(source.places);
  return named;
}

absl::StatusOr<ModelSource> LoadConfig(const std::string& name) {
  ModelSource source;
  source.preset = LoadModelPreset(name).ok();
  MGC_ASSIGN_OR_RETURN(source.config,
                       LoadModelConfig(ModelPath(name).value_or(name), &source.notes));
  source.dims = DimsOf(*source.config);
  source.seq_length = source.config->seq_length;
  return source;
}

}  // namespace

ModelSource SourceOf(const Graph& graph) {
  ModelSource source;
  source.graph = PrepareModel(graph, &source.notes);
  source.dims = WithLayersOf(*source.graph, {});
  source.seq_length = std::max<int64_t>(TokensOf(*source.graph).size, 1);
  return source;
}

absl::optional<std::string> ModelPath(const std::string& name) {
  if (name == "-" || LoadModelPreset(name).ok()) return absl::nullopt;
  return IsFolder(name) ? name + "/config.json" : name;
}

absl::StatusOr<ModelSource> LoadModel(const std::string& name) {
  const bool text = name == "-" || absl::EndsWith(name, ".mgc");
  absl::StatusOr<ModelSource> source = text ? LoadGraph(name) : LoadConfig(name);
  if (source.ok()) source->name = name;
  // What a plan breaks as a model helps nobody.
  if (!source.ok() && name != "-" && IsPlanFile(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(name),
                     ": this is a plan, not a model: mgc-run trains it, "
                     "mgc-plan show tells what it was made from"));
  }
  return source;
}

ParallelConfig ConfigFor(const ModelSource& source, const ParallelFlags& flags) {
  if (!source.graph.has_value() || flags.micro_batch_size.has_value()) {
    return ConfigOf(flags, source.seq_length);
  }
  ParallelFlags fixed = flags;
  const int64_t dp = std::max<int64_t>(DataParallelSize(ConfigOf(flags, 1)), 1);
  const int64_t batch = SamplesOf(*source.graph).size;
  fixed.micro_batch_size = std::max<int64_t>(batch / dp, 1);
  return ConfigOf(fixed, source.seq_length);
}

namespace {

// T4.
Diagnostics CheckData(const Graph& graph) {
  Diagnostics violations;
  const int64_t batch = std::max<int64_t>(SamplesOf(graph).size, 1);
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    const std::vector<Dim>& dims = value.type.dims;
    if (input.kind != InputKind::kData) continue;
    if (!dims.empty() && dims[0].name == kSampleDim && dims[0].size == batch) continue;
    violations.Add({"T4",
                    absl::StrCat("data %", EscapeBytes(value.name), " is ", value.type.ToString(),
                                 "; samples lie along a first dim `", kSampleDim,
                                 "`, of one size in all data"),
                    absl::StrCat(kSampleDim, "=", batch, " as its first dim")});
  }
  return violations;
}

int64_t SamplesOfAllRanks(const ParallelConfig& config) {
  return SaturatingMultiply(config.micro_batch_size, DataParallelSize(config));
}

// The sizes of the graph itself, which nothing binds.
std::string SizesAsWritten(const Graph& graph, int64_t dp, absl::string_view label) {
  if (label == "T2") return absl::StrCat("sequence length ", TokensOf(graph).size);
  const int64_t batch = SamplesOf(graph).size;
  return batch % dp == 0 ? absl::StrCat("micro-batch size ", batch / dp)
                         : absl::StrCat("batch ", NearestMultiples(batch, dp));
}

}  // namespace

Diagnostics CheckGraphSizes(const ModelSource& source, const ParallelConfig& config) {
  const int64_t dp = DataParallelSize(config);
  if (!source.graph.has_value() || dp < 1 || config.micro_batch_size < 1 || config.seq_length < 1) {
    return {};
  }
  const Graph& graph = *source.graph;
  Diagnostics violations = CheckData(graph);
  if (!violations.empty()) return violations;
  if (TokensOf(graph).size == 0 && config.seq_length != source.seq_length) {
    violations.Add(
        {"T2",
         absl::StrCat("the graph has no tokens, of which a sample could have ", config.seq_length),
         "no sequence length"});
  }
  const Resized resized = Resize(graph, SamplesOfAllRanks(config), config.seq_length);
  for (Diagnostic violation : InText(resized.violations, EscapeBytes(source.name), source.places)) {
    violation.hint = SizesAsWritten(graph, dp, violation.label);
    violations.Add(std::move(violation));
  }
  violations.LeaveOut(resized.violations.left_out());
  return violations;
}

namespace {

absl::StatusOr<Graph> BuildAsItIs(const ModelSource& source, const ParallelConfig& config,
                                  int64_t vocab_multiple, std::vector<std::string>* notes) {
  if (source.graph.has_value()) {
    Resized resized = Resize(*source.graph, SamplesOfAllRanks(config), config.seq_length);
    MGC_RETURN_IF_ERROR(resized.violations.ToStatus());
    for (std::string& note : resized.notes) notes->push_back(std::move(note));
    return *std::move(resized.graph);
  }
  ModelOptions options = source.options;
  options.vocab_multiple = vocab_multiple;
  return BuildModel(*source.config, config.micro_batch_size * DataParallelSize(config),
                    config.seq_length, options);
}

}  // namespace

absl::StatusOr<Graph> BuildGraph(const ModelSource& source, const ParallelConfig& config,
                                 int64_t vocab_multiple, std::vector<std::string>* notes) {
  MGC_ASSIGN_OR_RETURN(Graph graph, BuildAsItIs(source, config, vocab_multiple, notes));
  if (source.evaluated) graph = KeepParameters(graph);
  if (!source.quantized) return graph;
  return Quantize(graph);
}

}  // namespace mgc
