// The order of samples that Megatron-LM's GPTDataset has made and kept beside its data.
//
// Three arrays of NumPy: `document_index` lists sequences of the .idx, shuffled, as many epochs of
// them as are needed; `sample_index`, a row [place in that list, token of that sequence] for each
// sample and one more, says where samples begin, a sample's length apart; `shuffle_index` is the
// order in which these samples are taken. Sample i is the tokens from row shuffle_index[i] up to
// the first of the next row, that one included; unlike here, a sample may hold the end of one
// epoch and the begin of the next.

#ifndef MGC_RUNTIME_DATA_MEGATRON_ORDER_H_
#define MGC_RUNTIME_DATA_MEGATRON_ORDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/index_file.h"
#include "runtime/data/tokens/token_file.h"

namespace mgc {

// Immutable; any number of threads.
class MegatronOrder {
 public:
  // `prefix` is what the files' names have in common, as
  // `cache/<hash>-GPTDataset-train` before `-document_index.npy`; or the path of one of the three.
  // `file` is Megatron-LM's pair that they were made of. InvalidArgument for files that are no such
  // arrays or do not fit together, for a first sample of another length than seq_length, and for
  // another kind of token file.
  static absl::StatusOr<std::shared_ptr<const MegatronOrder>> Open(
      const std::string& prefix, std::shared_ptr<const TokenFile> file, int64_t seq_length);

  // The three files behind `prefix`.
  static std::vector<std::string> FilesOf(const std::string& prefix);

  const std::shared_ptr<const TokenFile>& file() const { return file_; }
  int64_t samples() const { return shuffle_.rows(); }

  // Copies tokens from number `from` on of a sample below samples(), of its seq_length + 1. Errors
  // of TokenFile::Read; InvalidArgument, with file, row and number, for an index that points to
  // nothing or a sample of another length.
  absl::Status Read(int64_t sample, int64_t from, int64_t vocabulary,
                    absl::Span<int32_t> tokens) const;

 private:
  // A token of a sequence that the list names.
  struct Place {
    int64_t document, offset;
  };

  MegatronOrder(std::shared_ptr<const TokenFile> file, int64_t seq_length, IndexFile documents,
                IndexFile samples, IndexFile shuffle)
      : file_(std::move(file)),
        seq_length_(seq_length),
        documents_(std::move(documents)),
        samples_(std::move(samples)),
        shuffle_(std::move(shuffle)) {}

  absl::StatusOr<Place> PlaceAt(int64_t row) const;
  absl::StatusOr<std::pair<int64_t, int64_t>> SequenceAt(int64_t document) const;

  std::shared_ptr<const TokenFile> file_;
  int64_t seq_length_;
  IndexFile documents_, samples_, shuffle_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_MEGATRON_ORDER_H_
