// Builds tiny models down to the local level and runs steps of them by reference evaluation, for
// tests that compare parallel steps with one device.

#ifndef MGC_TESTS_DERIVATION_LOCAL_TRAINING_H_
#define MGC_TESTS_DERIVATION_LOCAL_TRAINING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/residue_model.h"
#include "graph/ir/graph.h"
#include "passes/config/parallel_config.h"

namespace mgc {

struct TinyModel {
  ModelConfig config;
  int64_t batch = 4;  // of one micro-batch over all data-parallel ranks
  int64_t seq = 8;
};
TinyModel TinyGpt();
TinyModel TinyLlama();

// A configuration of one pipeline stage.
ParallelConfig ConfigOf(int64_t tp, int64_t dp, bool sequence_parallel, int64_t zero);

// The local training graph of a model under a configuration; of one rank by default.
Graph LocalGraph(const TinyModel& model, const ParallelConfig& parallel);

// What one step of two micro-batches comes to.
struct StepValues {
  std::map<std::string, HostTensor<double>>
      values;  // reports, `<param>/grad` summed, new parameters
};
StepValues RunStep(const TinyModel& model, const Graph& local);

// The same of the same step in residues, with the inverses of zero taken on the way.
struct ExactStepValues {
  std::map<std::string, HostTensor<ResiduePair>> values;
  int64_t zero_denominators = 0;
};
ExactStepValues RunExactStep(const TinyModel& model, const Graph& local, uint64_t key);

// Largest difference of two tensors relative to the largest entry.
double RelativeError(const HostTensor<double>& a, const HostTensor<double>& b);

// Number of collectives that move data, as `forward layer all-reduce g tp` -> count, of layer
// `layer` (kEmbeddingLayer, 0.., head) or of the update.
std::map<std::string, int> CountCollectives(const Graph& local, Phase phase, int layer);

}  // namespace mgc

#endif  // MGC_TESTS_DERIVATION_LOCAL_TRAINING_H_
