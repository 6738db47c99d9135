// What a step is fed with: the data inputs that the load instructions of a plan name.

#ifndef MGC_GRAPH_PLAN_DATA_INPUT_H_
#define MGC_GRAPH_PLAN_DATA_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// A data input: its name in the model, and its values for one micro-batch of all ranks. Of a plan
// that is to run the first dim counts samples (plan_c14).
struct DataInput {
  std::string name;
  TensorType type;
  int64_t entries = 0;  // that its indices are looked up in; 0: none, or not asked for
};

// All that segments load, ordered by name. Loads that graph/plan/plan_check.h refuses are left out;
// of two that disagree in their type the first counts.
std::vector<DataInput> DataInputsOf(const Plan& plan);
// The same of a plan that has been checked, with their entries.
std::vector<DataInput> DataInputsWithEntries(const Plan& plan);

// What an input takes when no tensor is given for it.
enum class DataFeed : uint8_t {
  kNone,       // there is nothing: a tensor must be given
  kTokens,     // `tokens`, i64 [samples, tokens of a sample]: those of a text
  kTargets,    // `targets`, likewise: those one further on
  kDocuments,  // `documents`, likewise (graph/ir/vocabulary.h): made of the tokens
  kPositions,  // `positions`, likewise
  kOnes,       // `weights`, f32 of any shape: 1 for every sample that counts
};
DataFeed FeedOf(absl::string_view name, const TensorType& type, int64_t tokens_per_sample);
// Whether a text gives it: what is neither kNone nor kOnes.
bool IsOfText(DataFeed feed);
// Whether it needs to know which token ends documents.
bool NeedsDocuments(DataFeed feed);

// The tokens of a sample, as `tokens`, else `targets`, are written in the model: the size of their
// second and last dim. 0 when a model has neither as i64 [samples, tokens].
int64_t TokensPerSample(const Graph& model);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_DATA_INPUT_H_
