// Training data: tokens, cut into samples by a global index.
//
// The files of a source lie one behind the other. Sample i of sequence length s is the s + 1 tokens
// of a file from offset i * s of it: s inputs and, one further on, s targets; neighbours share one
// token, so that every token of a file but the first is a target once in an epoch, up to the last
// few, which make no sample. No sample holds tokens of two files. Which rank reads a sample, and in
// which micro-batch, is not known here.
#ifndef MGC_RUNTIME_DATA_DATA_H_
#define MGC_RUNTIME_DATA_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "runtime/data/blend/blend.h"
#include "runtime/data/megatron_blend.h"
#include "runtime/data/megatron_order.h"
#include "runtime/data/tokens/token_file.h"

namespace mgc {

// Tokens [begin, end) of a file.
struct TokenPart {
  std::shared_ptr<const TokenFile> file;
  int64_t begin = 0;
  int64_t end = 0;
};

// Files whose samples are taken one after the other; several sources are blended.
struct TokenSource {
  std::vector<TokenPart> parts;  // at least one
  double weight = 1;             // beside other sources; above 0 and finite
};

// Where documents end in a text: each behind a token `token`.
struct DocumentEnds {
  int32_t token = 0;
  bool mask_loss = false;  // the token behind the end, another document's first, is no target
};

// Copies share the files. Safe to read from many threads.
class TokenDataset {
 public:
  // A single file of any format (runtime/data/tokens/token_file.h). Its errors, and InvalidArgument
  // if it holds fewer than seq_length + 1 tokens. seq_length >= 1.
  static absl::StatusOr<TokenDataset> Open(const std::string& path, int64_t seq_length);

  // The same of `bytes` in memory; `name` stands for the file in messages.
  static absl::StatusOr<TokenDataset> FromBytes(std::string bytes, int64_t seq_length,
                                                absl::string_view name);

  // InvalidArgument with every part that is too short. Of several sources sample i is the next one
  // of the source that Blend says; each begins again by itself when it has no more.
  static absl::StatusOr<TokenDataset> Create(std::vector<TokenSource> sources, int64_t seq_length);

  // Samples in the orders that Megatron-LM has made of files, at least one, each of seq_length. Of
  // several the next one comes from the file that `blend` says, Megatron-LM's own list, or without
  // one that Blend says of their weights. Behind the last sample of the list, or else of a file,
  // they are taken again.
  struct Ordered {
    std::shared_ptr<const MegatronOrder> order;
    double weight = 1;
  };
  static TokenDataset InOrder(const std::vector<Ordered>& files,
                              std::shared_ptr<const MegatronBlend> blend, int64_t seq_length);

  // The same samples in another order, a new one in every epoch of a source, which follows from
  // `seed` alone: nothing is stored, and any sample is as quick to find.
  TokenDataset Shuffled(uint64_t seed) const;

  void EndDocumentsWith(DocumentEnds ends) { ends_ = ends; }
  const absl::optional<DocumentEnds>& ends() const { return ends_; }

  int64_t seq_length() const { return seq_length_; }
  int64_t tokens() const;  // of all sources
  // What all sources are cut from, in their order.
  std::vector<TokenPart> Parts() const;

  // Samples of all sources, or of Megatron-LM's list of them; at least 1.
  int64_t samples_per_epoch() const;

  // Whether where a sample comes from is a question to Blend, which finds neighbours quicker.
  bool is_blended() const { return blend_ != nullptr; }

  // Whether the last sample of each file ends with its last token, and samples come in the order of
  // the files: what else is counted in samples then lies beside these.
  bool is_aligned() const;

  // Looks for tokens outside of `vocabulary`, above 0: where there are at most kTokensChecked, at
  // all of them, else at so many, everywhere in the files. InvalidArgument with a line for each
  // part that has some (TokenFile::CheckVocabulary); errors of reading.
  static constexpr int64_t kTokensChecked = int64_t{1} << 26;
  absl::Status CheckVocabulary(int64_t vocabulary) const;

  // Copies tokens from number `from` of a sample on, of its s + 1; an index past the epoch wraps
  // into the next one. sample >= 0. Errors of TokenFile::Read.
  absl::Status ReadSample(int64_t sample, int64_t from, int64_t vocabulary,
                          absl::Span<int32_t> tokens) const;

  // Splits off the last `tail_samples` samples of the last file, with the one token more that they
  // need, for evaluation: {the rest, the tail}. No token is in both. The tail is never shuffled.
  // InvalidArgument with the numbers if less than one sample of that file would remain, or if there
  // are several sources or an order of Megatron-LM's.
  absl::StatusOr<std::pair<TokenDataset, TokenDataset>> HoldBackTail(int64_t tail_samples) const;

 private:
  struct Source {
    std::vector<TokenPart> parts;
    std::vector<int64_t> first_sample;           // of each part, and behind the last one
    std::shared_ptr<const MegatronOrder> order;  // of the samples of its one part, or null
    int64_t samples() const { return order != nullptr ? order->samples() : first_sample.back(); }
  };

  TokenDataset(std::vector<TokenSource> sources, int64_t seq_length);

  bool is_in_order() const { return sources_[0].order != nullptr; }
  absl::StatusOr<Blended> PlaceOf(int64_t sample) const;

  std::vector<Source> sources_;
  int64_t seq_length_;
  std::shared_ptr<const Blend> blend_;  // of several sources without a list
  std::shared_ptr<const MegatronBlend> blend_list_;
  absl::optional<uint64_t> shuffle_seed_;
  absl::optional<DocumentEnds> ends_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_DATA_H_
