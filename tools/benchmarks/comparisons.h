// What tools/bench compares: GPT-2 of 124M parameters on made-up text, beside its matrix products
// alone, on one rank and on several, in f32 and bf16; and the collectives of its gradients.

#ifndef MGC_TOOLS_BENCHMARKS_COMPARISONS_H_
#define MGC_TOOLS_BENCHMARKS_COMPARISONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "frontends/model_config.h"
#include "graph/types/machine.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

inline constexpr absl::string_view kOneRank = "one-rank";
inline constexpr absl::string_view kTwoRanks = "two-ranks";
inline constexpr absl::string_view kPipeline = "pipeline";
inline constexpr absl::string_view kEightRanks = "eight-ranks";
inline constexpr absl::string_view kCollectives = "collectives";
inline constexpr absl::string_view kProcesses = "processes";
inline constexpr absl::string_view kProcessSums = "process-sums";
inline constexpr absl::string_view kMemory = "memory";
inline constexpr absl::string_view kCheckpoints = "checkpoints";
inline constexpr absl::string_view kGeneration = "generation";
inline constexpr absl::string_view kNarrowGeneration = "generation-bf16";
inline constexpr absl::string_view kQuantizedGeneration = "generation-int8";
inline constexpr absl::string_view kComparisons[] = {
    kOneRank,     kTwoRanks, kPipeline,    kEightRanks, kCollectives,      kProcesses,
    kProcessSums, kMemory,   kCheckpoints, kGeneration, kNarrowGeneration, kQuantizedGeneration};

struct BenchSetting {
  ModelConfig model;
  int workers = 1;  // threads of every side
  Machine machine;  // for which plans are made; one with cores predicts their steps
  // The command that runs torch_step.py, without its flags; empty: PyTorch is left out.
  std::vector<std::string> torch;
  // The command that runs torch_generate.py, the same way; empty: transformers is left out.
  std::vector<std::string> transformers;
  // The command that runs mpi_sums.cc in two processes, the same way; empty: MPI is left out.
  std::vector<std::string> mpi;
};

// The comparisons of one name, one of kComparisons: several where all sides at once would need too
// much memory.
std::vector<Comparison> ComparisonsNamed(absl::string_view name, const BenchSetting& setting);

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_COMPARISONS_H_
