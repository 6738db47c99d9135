// Where a model comes from: a preset, a model configuration file or a graph in text form.

#ifndef MGC_TOOLS_CLI_MODEL_SOURCE_H_
#define MGC_TOOLS_CLI_MODEL_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "frontends/model_config.h"
#include "graph/base/diagnostic.h"
#include "graph/ir/graph.h"
#include "passes/config/parallel_config.h"
#include "tools/cli/parallel_flags.h"

namespace mgc {

// A model before its sizes per micro-batch are known; or, from text, a graph that fixes them.
struct ModelSource {
  std::string name;                    // as the user gave it
  bool preset = false;                 // one of ours
  absl::optional<ModelConfig> config;  // of a preset or a configuration file
  absl::optional<Graph> graph;         // of a `.mgc` file, checked
  ModelDims dims;
  int64_t seq_length = 1;          // unless a flag says otherwise
  std::vector<std::string> notes;  // for stderr
};

// `name`: a preset; a `.mgc` file or `-`, a logical graph; otherwise a configuration file, or a
// folder with a `config.json`. Errors are located in the file; a name that is neither preset nor
// file is NotFound with the nearest preset.
absl::StatusOr<ModelSource> LoadModel(const std::string& name);

// The file that LoadModel reads; none for a preset and for stdin.
absl::optional<std::string> ModelPath(const std::string& name);

// The configuration that the flags ask for. A graph fixes its micro-batch: its flag defaults to
// what the graph holds, divided over the data-parallel ranks.
ParallelConfig ConfigFor(const ModelSource& source, const ParallelFlags& flags);

// T1: a graph's micro-batch differs from micro-batch size * dp; T2: its sequences from the sequence
// length asked for.
Diagnostics CheckGraphSizes(const ModelSource& source, const ParallelConfig& config);

// The logical graph of one micro-batch over all data-parallel ranks, for a configuration without
// violations.
absl::StatusOr<Graph> BuildGraph(const ModelSource& source, const ParallelConfig& config,
                                 int64_t vocab_multiple);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_MODEL_SOURCE_H_
