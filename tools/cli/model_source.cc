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
#include "graph/plan/data_input.h"
#include "graph/text/parser.h"
#include "passes/config/nearest_legal.h"
#include "passes/graph/dim_classes.h"
#include "tools/cli/output.h"
#include "tools/cli/plan_file.h"

namespace mgc {
namespace {

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool IsNamed(const Dim& dim, absl::string_view name) { return dim.name == name; }

// The largest dim of this logical name; 0 when the graph has none.
int64_t SizeOfDim(const Graph& graph, absl::string_view name) {
  int64_t size = 0;
  for (const Value& value : graph.values()) {
    for (const Dim& dim : value.type.dims) {
      if (dim.name == name) size = std::max(size, dim.size);
    }
  }
  return size;
}

// A graph's hidden size and heads need not go together: it has sizes of its own for everything.
ModelDims DimsOf(const Graph& graph) {
  ModelDims dims;
  dims.hidden = SizeOfDim(graph, "embed");
  dims.heads = SizeOfDim(graph, "heads");
  dims.kv_heads = SizeOfDim(graph, "kv_heads");
  dims.head_dim = std::max<int64_t>(SizeOfDim(graph, "head_dim"), 1);
  dims.ffn = SizeOfDim(graph, "mlp");
  dims.vocab = SizeOfDim(graph, "vocab");
  return WithLayersOf(graph, dims);
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
  ValuePlaces places;
  MGC_ASSIGN_OR_RETURN(source.graph, ParseGraph(text, file, &places));
  if (source.graph->level() != Level::kLogical) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(name), ": the graph is of level ",
                                                   NameOf(source.graph->level()),
                                                   ", a model is of level logical"));
  }
  MGC_RETURN_IF_ERROR(InText(FindViolations(*source.graph), EscapeBytes(file), places).ToStatus());
  source.graph = NameDims(*source.graph);  // sizes are asked for by name
  source.dims = DimsOf(*source.graph);
  const int64_t tokens = TokensPerSample(*source.graph);
  source.seq_length = tokens > 0 ? tokens : std::max<int64_t>(SizeOfDim(*source.graph, "seq"), 1);
  return source;
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
  const int64_t batch = SizeOfDim(*source.graph, "batch");
  fixed.micro_batch_size = std::max<int64_t>(batch / dp, 1);
  return ConfigOf(fixed, source.seq_length);
}

Diagnostics CheckGraphSizes(const ModelSource& source, const ParallelConfig& config) {
  Diagnostics violations;
  const int64_t dp = DataParallelSize(config);
  if (!source.graph.has_value() || dp < 1) return violations;
  const int64_t batch = SizeOfDim(*source.graph, "batch");
  if (batch > 0 && batch != SaturatingMultiply(config.micro_batch_size, dp)) {
    violations.Add(
        {"T1",
         absl::StrCat("the graph's micro-batch holds ", batch, " samples, not micro-batch size ",
                      config.micro_batch_size, " * dp ", dp),
         batch % dp == 0 ? absl::StrCat("micro-batch size ", batch / dp)
                         : absl::StrCat("batch ", NearestMultiples(batch, dp))});
  }
  for (const GraphInput& input : source.graph->inputs()) {
    const Value& value = source.graph->value(input.value);
    const std::vector<Dim>& dims = value.type.dims;
    if (input.kind != InputKind::kData) continue;
    if (!dims.empty() && IsNamed(dims[0], "batch") && dims[0].size == batch) continue;
    violations.Add(
        {"T4",
         absl::StrCat("data %", EscapeBytes(value.name), " is ", value.type.ToString(),
                      "; samples lie along a first dim `batch`, of one size in all data"),
         absl::StrCat("batch=", std::max<int64_t>(batch, 1), " as its first dim")});
  }
  if (config.seq_length != source.seq_length) {
    violations.Add({"T2",
                    absl::StrCat("the graph's sequences have ", source.seq_length, " tokens, not ",
                                 config.seq_length),
                    absl::StrCat("sequence length ", source.seq_length)});
  }
  return violations;
}

absl::StatusOr<Graph> BuildGraph(const ModelSource& source, const ParallelConfig& config,
                                 int64_t vocab_multiple) {
  if (source.graph.has_value()) return *source.graph;
  ModelOptions options;
  options.vocab_multiple = vocab_multiple;
  return BuildModel(*source.config, config.micro_batch_size * DataParallelSize(config),
                    config.seq_length, options);
}

}  // namespace mgc
