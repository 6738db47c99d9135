// The flags that say which tokens a run takes, in what order, and those tokens opened.

#ifndef MGC_TOOLS_CLI_DATA_FLAGS_H_
#define MGC_TOOLS_CLI_DATA_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "runtime/data/data.h"
#include "tools/cli/flags.h"

namespace mgc {

struct DataFlags {
  // FILE, one behind the other; or a weight before each FILE. As given.
  std::vector<std::string> train, eval;
  absl::optional<std::string> split;
  bool shuffle = false;
};

void AddDataFlag(Flags* flags, DataFlags* out);        // --data
void AddDataOrderFlags(Flags* flags, DataFlags* out);  // --split, --shuffle
void AddEvalDataFlag(Flags* flags, DataFlags* out);    // --eval-data

// F5: weights that are none, with a file for each; parts of a split that are none.
// F7: evaluation data and a split; an order of tokens beside tensors, which have another.
Diagnostics CheckDataFlags(const DataFlags& flags, bool has_tensors);

// Whether --split sets samples aside for evaluation.
bool SplitsOffEvaluation(const DataFlags& flags);

// The files behind what is named; `-` is stdin. Of --data and of --eval-data.
std::vector<std::string> TrainFilesOf(const DataFlags& flags);
std::vector<std::string> EvalFilesOf(const DataFlags& flags);

struct OpenedData {
  absl::optional<TokenDataset> train, eval;  // none where no file is named
};

// Opens them for samples of `seq_length` tokens; reads stdin where it is named. `seed` is of the
// order of shuffled samples. The flags have passed their check. Errors of TokenFile::Open and
// TokenDataset::Create.
absl::StatusOr<OpenedData> OpenData(const DataFlags& flags, int64_t seq_length, uint64_t seed);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_DATA_FLAGS_H_
