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
  bool mock = false;                           // instead of files
  std::vector<std::string> megatron_orders;    // of the files to train on, one each
  absl::optional<std::string> megatron_blend;  // of these orders
  absl::optional<int64_t> eod;                 // the token that ends documents
  bool eod_mask_loss = false;
};

void AddDataFlag(Flags* flags, DataFlags* out);        // --data, --mock-data
void AddDataOrderFlags(Flags* flags, DataFlags* out);  // --split, --shuffle, --eod, ...
void AddEvalDataFlag(Flags* flags, DataFlags* out);    // --eval-data

// F5: weights that are none, with a file for each; parts of a split that are none.
// F7: what means something beside another flag alone; files and tokens that are made up; evaluation
// data and a split; an order of tokens beside tensors, which have another.
Diagnostics CheckDataFlags(const DataFlags& flags, bool has_tensors);

// Whether --split sets samples aside for evaluation.
bool SplitsOffEvaluation(const DataFlags& flags);

// The files behind what is named; `-` is stdin. Of --data and its order, and of --eval-data.
std::vector<std::string> TrainFilesOf(const DataFlags& flags);
std::vector<std::string> EvalFilesOf(const DataFlags& flags);

struct OpenedData {
  absl::optional<TokenDataset> train, eval;  // none where no file is named
};

// What a run takes from tokens.
struct TokenUse {
  int64_t seq_length = 0;  // tokens of a sample
  int64_t vocabulary = 0;  // that tokens are looked up in; 0: none
  uint64_t seed = 0;       // of the order of shuffled samples, and of tokens that are made up
};

// Opens them; reads stdin where it is named. The flags have passed their check. Errors of
// TokenFile::Open, MegatronOrder::Open, TokenDataset::Create and TokenDataset::CheckVocabulary, of
// training and evaluation together; InvalidArgument for made-up tokens of no vocabulary, and an end
// of documents outside of it.
absl::StatusOr<OpenedData> OpenData(const DataFlags& flags, const TokenUse& use);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_DATA_FLAGS_H_
