// Where a model comes from: a preset, a model configuration file or a graph in text form.

#ifndef MGC_TOOLS_CLI_MODEL_SOURCE_H_
#define MGC_TOOLS_CLI_MODEL_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "graph/text/parser.h"
#include "passes/config/parallel_config.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {

// A model before its sizes per micro-batch are known.
struct ModelSource {
  std::string name;                          // as the user gave it
  bool preset = false;                       // one of ours
  absl::optional<ModelConfig> config;        // of a preset or a configuration file
  absl::optional<Graph> graph;               // of a `.mgc` file, checked, with names for all dims
  ValuePlaces places;                        // in that file
  ModelOptions options;                      // what flags ask of a configuration's model
  bool evaluated = false;                    // nothing trains it (KeepParameters)
  bool quantized = false;                    // its weights become whole numbers (Quantize)
  std::vector<std::string> adapter_modules;  // what its adapter's layers are in the family's files
  // Of a graph its layers alone: its values have their own sizes.
  ModelDims dims;
  int64_t seq_length = 1;          // unless a flag says otherwise
  std::vector<std::string> notes;  // for stderr
};

// `name`: a preset; a `.mgc` file or `-`, a logical graph; otherwise a configuration file, or a
// folder with a `config.json`. Errors are located in the file; a name that is neither preset nor
// file is NotFound with the nearest preset.
absl::StatusOr<ModelSource> LoadModel(const std::string& name);

// A model that is this graph, of level logical and checked; parameters that are read in parts
// become their parts (passes/graph/unpack.h), and all dims get names.
ModelSource SourceOf(const Graph& graph);

// The file that LoadModel reads; none for a preset and for stdin.
absl::optional<std::string> ModelPath(const std::string& name);

// The configuration that the flags ask for. Sizes that no flag gives are the model's; of a graph
// they are those it was written with, its micro-batch shared by the data-parallel ranks, with at
// least a sample for each.
ParallelConfig ConfigFor(const ModelSource& source, const ParallelFlags& flags);

// What of a graph binds its sizes, where the flags ask for others: T1 its samples, T2 the tokens of
// a sample (passes/graph/resize.h); T4: data whose first dim does not count samples.
Diagnostics CheckGraphSizes(const ModelSource& source, const ParallelConfig& config);

// The logical graph of one micro-batch over all data-parallel ranks, for a configuration without
// violations. `notes` gets what a graph does not say of its new sizes.
absl::StatusOr<Graph> BuildGraph(const ModelSource& source, const ParallelConfig& config,
                                 int64_t vocab_multiple, std::vector<std::string>* notes);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_MODEL_SOURCE_H_
