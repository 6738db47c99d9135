#include "tools/cli/data_flags.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "runtime/data/tokens/token_paths.h"
#include "tools/cli/output.h"

namespace mgc {
namespace {

constexpr size_t kTrain = 0;
constexpr size_t kEval = 1;
constexpr size_t kParts = 3;  // train, evaluation, kept for a test

struct WeightedFile {
  absl::optional<double> weight;
  std::string path;
};

// The words behind a flag, which has taken a file for each weight.
std::vector<WeightedFile> WeightedFilesOf(const std::vector<std::string>& words) {
  std::vector<WeightedFile> files;
  for (size_t i = 0; i < words.size(); ++i) {
    WeightedFile file;
    if (i + 1 < words.size()) file.weight = Flags::WeightIn(words[i]);
    if (file.weight.has_value()) ++i;
    file.path = words[i];
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<std::string> PathsOf(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const WeightedFile& file : WeightedFilesOf(words)) {
    for (std::string& path : FilesBehind(file.path)) paths.push_back(std::move(path));
  }
  return paths;
}

void CheckWeights(const char* flag, const std::vector<std::string>& words,
                  Diagnostics* violations) {
  const std::vector<WeightedFile> files = WeightedFilesOf(words);
  size_t weighted = 0;
  double sum = 0;
  for (const WeightedFile& file : files) {
    if (!file.weight.has_value()) continue;
    ++weighted;
    sum += *file.weight;
    if (*file.weight > 0 && std::isfinite(sum)) continue;
    violations->Add({"F5",
                     absl::StrCat(flag, ": the weight ", *file.weight, " of ",
                                  EscapeBytes(file.path), " is not above 0 and finite"),
                     ""});
  }
  if (weighted > 0 && weighted < files.size()) {
    violations->Add(
        {"F5", absl::StrCat(flag, ": ", weighted, " of ", files.size(), " files have a weight"),
         absl::StrCat(flag, " W FILE W FILE, or no weights")});
  }
}

void CheckMegatronOrders(const DataFlags& flags, size_t files, bool blends,
                         Diagnostics* violations) {
  const size_t orders = flags.megatron_orders.size();
  if (orders == 0) {
    if (!flags.megatron_blend) return;
    violations->Add({"F7",
                     "--megatron-blend blends what --megatron-order orders, which is not given",
                     "--megatron-order PREFIX for each file of --data"});
    return;
  }
  if (orders != files || flags.shuffle || flags.split) {
    violations->Add({"F7",
                     absl::StrCat("--megatron-order is the order of one file of --data, instead of "
                                  "--shuffle and --split; of ",
                                  files, " files there are ", orders, " orders"),
                     "--megatron-order PREFIX for each file of --data"});
  }
  if (files > 1 && !blends && !flags.megatron_blend) {
    violations->Add(
        {"F7",
         "several files of --data with orders of Megatron-LM's are blended, and neither "
         "weights nor --megatron-blend are given",
         "--data W FILE W FILE, or --megatron-blend PREFIX"});
  }
}

// The shares of a split, at most three, which are not all 0; none where they are no such numbers.
absl::optional<std::array<double, kParts>> SharesOf(absl::string_view split) {
  std::array<double, kParts> shares = {};
  const std::vector<absl::string_view> words = absl::StrSplit(split, ',');
  if (words.size() > shares.size()) return absl::nullopt;
  double sum = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::SimpleAtod(words[i], &shares[i]) || shares[i] < 0) return absl::nullopt;
    sum += shares[i];
  }
  if (!(sum > 0) || !std::isfinite(sum) || !(shares[kTrain] > 0)) return absl::nullopt;
  for (double& share : shares) share /= sum;
  return shares;
}

absl::StatusOr<std::shared_ptr<const TokenFile>> OpenFile(const std::string& path) {
  if (path != "-") return TokenFile::Open(path);
  MGC_ASSIGN_OR_RETURN(std::string bytes, ReadInput(path));
  return TokenFile::FromBytes(std::move(bytes), "stdin");
}

// Part `part` of a file: of its documents where they are known, else of its tokens.
absl::StatusOr<TokenPart> PartOf(std::shared_ptr<const TokenFile> file,
                                 const std::array<double, kParts>& shares, size_t part) {
  const absl::optional<int64_t> documents = file->documents();
  const auto all = static_cast<double>(documents.value_or(file->tokens()));
  double before = 0;
  for (size_t i = 0; i < part; ++i) before += shares[i];
  const auto place = [&](double share) -> absl::StatusOr<int64_t> {
    const auto at = static_cast<int64_t>(std::nearbyint(share * all));
    return documents.has_value() ? file->DocumentBegin(std::min(at, *documents))
                                 : std::min(at, file->tokens());
  };
  MGC_ASSIGN_OR_RETURN(const int64_t begin, place(before));
  MGC_ASSIGN_OR_RETURN(const int64_t end, place(before + shares[part]));
  return TokenPart{std::move(file), begin, end};
}

absl::Status CheckPart(const TokenPart& part, size_t number, const std::string& split) {
  constexpr const char* kUses[] = {"training", "evaluation"};
  if (part.begin < part.end || split.empty()) return absl::OkStatus();
  const absl::optional<int64_t> documents = part.file->documents();
  return absl::InvalidArgumentError(
      absl::StrCat(part.file->name(), " has ", documents.value_or(part.file->tokens()),
                   documents.has_value() ? " documents" : " tokens", ", of which --split ", split,
                   " gives none to ", kUses[number]));
}

// A file with the weight it was given.
struct OpenedFile {
  absl::optional<double> weight;
  std::shared_ptr<const TokenFile> file;
};

absl::StatusOr<std::vector<OpenedFile>> OpenFiles(const std::vector<std::string>& words) {
  std::vector<OpenedFile> opened;
  for (const WeightedFile& file : WeightedFilesOf(words)) {
    opened.push_back({file.weight, nullptr});
    MGC_ASSIGN_OR_RETURN(opened.back().file, OpenFile(file.path));
  }
  return opened;
}

// A source for each weight, or one for all files without.
absl::StatusOr<TokenDataset> DatasetOf(const std::vector<OpenedFile>& files,
                                       const std::string& split, size_t part, int64_t seq_length) {
  constexpr std::array<double, kParts> kAll = {1, 0, 0};
  const std::array<double, kParts> shares = SharesOf(split).value_or(kAll);
  std::vector<TokenSource> sources;
  for (const OpenedFile& file : files) {
    MGC_ASSIGN_OR_RETURN(TokenPart of_file, PartOf(file.file, shares, part));
    MGC_RETURN_IF_ERROR(CheckPart(of_file, part, split));
    if (sources.empty() || file.weight.has_value()) {
      sources.push_back({{}, file.weight.value_or(1)});
    }
    sources.back().parts.push_back(std::move(of_file));
  }
  return TokenDataset::Create(std::move(sources), seq_length);
}

// Of files with an order each. What is wrong with several is said at once.
absl::StatusOr<TokenDataset> DatasetInOrder(const DataFlags& flags,
                                            const std::vector<OpenedFile>& files,
                                            int64_t seq_length) {
  Diagnostics violations;
  std::vector<TokenDataset::Ordered> ordered;
  std::vector<int64_t> samples;
  for (size_t i = 0; i < files.size(); ++i) {
    auto order = MegatronOrder::Open(flags.megatron_orders[i], files[i].file, seq_length);
    if (!order.ok() && files.size() == 1) return order.status();
    if (!order.ok()) {
      violations.Add("", "", std::string(order.status().message()));
      continue;
    }
    samples.push_back((*order)->samples());
    ordered.push_back({*std::move(order), files[i].weight.value_or(1)});
  }
  MGC_RETURN_IF_ERROR(violations.ToStatus());
  std::shared_ptr<const MegatronBlend> blend;
  if (flags.megatron_blend) {
    MGC_ASSIGN_OR_RETURN(blend, MegatronBlend::Open(*flags.megatron_blend, std::move(samples)));
  }
  return TokenDataset::InOrder(ordered, std::move(blend), seq_length);
}

// Of --data or --mock-data; none without.
absl::StatusOr<std::vector<OpenedFile>> OpenTrainFiles(const DataFlags& flags,
                                                       const TokenUse& use) {
  if (!flags.mock) return OpenFiles(flags.train);
  if (use.vocabulary > 0) {
    return std::vector<OpenedFile>{{absl::nullopt, TokenFile::Mock(use.seed, use.vocabulary)}};
  }
  return absl::InvalidArgumentError(
      "--mock-data makes up tokens, and the model looks none up: it has no input `tokens` or "
      "`targets` with a vocabulary");
}

absl::Status EndDocuments(const DataFlags& flags, const TokenUse& use, OpenedData* data) {
  if (!flags.eod) return absl::OkStatus();
  if (use.vocabulary > 0 && *flags.eod >= use.vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("--eod ", *flags.eod,
                                                   " is outside the vocabulary of ", use.vocabulary,
                                                   " (legal: 0 to ", use.vocabulary - 1, ")"));
  }
  for (absl::optional<TokenDataset>* part : {&data->train, &data->eval}) {
    if (!part->has_value()) continue;
    (*part)->EndDocumentsWith({static_cast<int32_t>(*flags.eod), flags.eod_mask_loss});
  }
  return absl::OkStatus();
}

absl::Status CheckVocabulary(const OpenedData& data, int64_t vocabulary) {
  Diagnostics violations;
  for (const absl::optional<TokenDataset>* part : {&data.train, &data.eval}) {
    if (!part->has_value() || vocabulary == 0) continue;
    absl::Status status = (*part)->CheckVocabulary(vocabulary);
    if (status.ok()) continue;
    if (!absl::IsInvalidArgument(status)) return status;
    violations.Add("", "", std::string(status.message()));
  }
  return violations.ToStatus();
}

}  // namespace

void AddDataFlag(Flags* flags, DataFlags* out) {
  flags->WeightedFiles("--data,--data-path",
                       "tokens: a file of mgc-tokenize, nanoGPT or llm.c, or any other, whose "
                       "bytes are tokens; - is stdin. Given again, a file behind the others; with "
                       "weights, blended",
                       &out->train);
  flags->Switch("--mock-data",
                "tokens that are made up, from --seed: runs that count up, so that a loss falls",
                &out->mock);
}

void AddDataOrderFlags(Flags* flags, DataFlags* out) {
  flags->Text("--split", "N,N,N",
              "shares of each file, of its documents where it has them, for training, evaluation "
              "and neither, as 969,30,1",
              &out->split);
  flags->Switch("--shuffle", "take samples in an order that follows from --seed, anew each epoch",
                &out->shuffle);
  flags->Texts("--megatron-order", "PREFIX",
               "Megatron-LM's order of the samples: what stands before -document_index.npy, "
               "-sample_index.npy and -shuffle_index.npy in its cache. Of several files given for "
               "each, in their order",
               &out->megatron_orders);
  flags->Text("--megatron-blend", "PREFIX",
              "Megatron-LM's blend of these orders: what stands before -dataset_index.npy and "
              "-dataset_sample_index.npy (default: as its rule makes it of the weights)",
              &out->megatron_blend);
  flags->Integer("--eod",
                 "the id of the token that ends documents, of plans made with "
                 "--reset-attention-mask or --reset-position-ids",
                 {0, std::numeric_limits<int32_t>::max()}, "F3", &out->eod);
  flags->Switch("--eod-mask-loss",
                "what follows --eod within a sample, another document's first token, is no target",
                &out->eod_mask_loss);
}

void AddEvalDataFlag(Flags* flags, DataFlags* out) {
  flags->WeightedFiles("--eval-data",
                       "what to evaluate on, as --data says it (default: samples held back at the "
                       "end of the data, as many as --eval-steps, else 1, take)",
                       &out->eval);
}

Diagnostics CheckDataFlags(const DataFlags& flags, bool has_tensors) {
  Diagnostics violations;
  CheckWeights("--data", flags.train, &violations);
  CheckWeights("--eval-data", flags.eval, &violations);
  if (flags.split && !SharesOf(*flags.split).has_value()) {
    violations.Add({"F5",
                    absl::StrCat("--split ", EscapeBytes(*flags.split),
                                 " is not one to three shares, of which the first is above 0"),
                    "--split 969,30,1"});
  }
  if (flags.mock && !flags.train.empty()) {
    violations.Add({"F7", "--mock-data and --data both give tokens to train on", "one of both"});
  }
  if (flags.eod_mask_loss && !flags.eod) {
    violations.Add({"F7", "--eod-mask-loss means something with --eod alone", "--eod ID"});
  }
  if (flags.split && !flags.eval.empty()) {
    violations.Add({"F7", "--split and --eval-data both give data to evaluate on", "one of both"});
  }
  const std::vector<WeightedFile> files = WeightedFilesOf(flags.train);
  const bool blends = files.size() > 1 && files[0].weight.has_value();
  CheckMegatronOrders(flags, files.size(), blends, &violations);
  for (const auto& [flag, given] :
       {std::make_pair("--shuffle", flags.shuffle),
        std::make_pair("--split", flags.split.has_value()),
        std::make_pair("--megatron-order", !flags.megatron_orders.empty()),
        std::make_pair("several weights of --data", blends)}) {
    if (!given || !has_tensors) continue;
    violations.Add({"F7",
                    absl::StrCat(flag, " with --inputs: tensors would stay in their own order"),
                    "one of both"});
  }
  return violations;
}

bool SplitsOffEvaluation(const DataFlags& flags) {
  if (!flags.split) return false;
  const auto shares = SharesOf(*flags.split);
  return shares.has_value() && (*shares)[kEval] > 0;
}

std::vector<std::string> TrainFilesOf(const DataFlags& flags) {
  std::vector<std::string> files = PathsOf(flags.train);
  const auto add = [&files](std::vector<std::string> more) {
    for (std::string& file : more) files.push_back(std::move(file));
  };
  for (const std::string& prefix : flags.megatron_orders) add(MegatronOrder::FilesOf(prefix));
  if (flags.megatron_blend) add(MegatronBlend::FilesOf(*flags.megatron_blend));
  return files;
}
std::vector<std::string> EvalFilesOf(const DataFlags& flags) { return PathsOf(flags.eval); }

absl::StatusOr<OpenedData> OpenData(const DataFlags& flags, const TokenUse& use) {
  OpenedData opened;
  const std::string split = flags.split.value_or("");
  MGC_ASSIGN_OR_RETURN(const std::vector<OpenedFile> files, OpenTrainFiles(flags, use));
  if (!flags.megatron_orders.empty()) {
    MGC_ASSIGN_OR_RETURN(opened.train, DatasetInOrder(flags, files, use.seq_length));
  } else if (!files.empty()) {
    MGC_ASSIGN_OR_RETURN(TokenDataset train, DatasetOf(files, split, kTrain, use.seq_length));
    opened.train = flags.shuffle ? train.Shuffled(use.seed) : std::move(train);
  }
  if (SplitsOffEvaluation(flags) && !files.empty()) {
    MGC_ASSIGN_OR_RETURN(opened.eval, DatasetOf(files, split, kEval, use.seq_length));
  } else if (!flags.eval.empty()) {
    MGC_ASSIGN_OR_RETURN(const std::vector<OpenedFile> eval, OpenFiles(flags.eval));
    MGC_ASSIGN_OR_RETURN(opened.eval, DatasetOf(eval, "", kTrain, use.seq_length));
  }
  MGC_RETURN_IF_ERROR(EndDocuments(flags, use, &opened));
  MGC_RETURN_IF_ERROR(CheckVocabulary(opened, use.vocabulary));
  return opened;
}

}  // namespace mgc
