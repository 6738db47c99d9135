#include "runtime/data/megatron_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
std::vector<std::string> MegatronOrder::FilesOf(const std::string& prefix) {
  return IndexFilesOf(prefix, {"-document_index.npy", "-sample_index.npy", "-shuffle_index.npy"});
}

absl::StatusOr<std::shared_ptr<const MegatronOrder>> MegatronOrder::Open(
    const std::string& prefix, std::shared_ptr<const TokenFile> file, int64_t seq_length) {
  if (!file->sequences().has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file->name(), " is no pair of Megatron-LM's, whose sequences its order lists"));
  }
  const std::vector<std::string> files = FilesOf(prefix);
  MGC_ASSIGN_OR_RETURN(IndexFile documents, IndexFile::Open(files[0], 1));
  MGC_ASSIGN_OR_RETURN(IndexFile samples, IndexFile::Open(files[1], 2));
  MGC_ASSIGN_OR_RETURN(IndexFile shuffle, IndexFile::Open(files[2], 1));
  if (shuffle.rows() < 1 || samples.rows() <= shuffle.rows() || documents.rows() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(shuffle.name(), " orders ", shuffle.rows(), " samples, and ", samples.name(),
                     " has ", samples.rows(), " rows, where one more than the samples stands, and ",
                     documents.name(), " ", documents.rows(), " sequences"));
  }
  std::shared_ptr<const MegatronOrder> order(new MegatronOrder(
      std::move(file), seq_length, std::move(documents), std::move(samples), std::move(shuffle)));
  MGC_RETURN_IF_ERROR(order->Read(0, 0, /*vocabulary=*/0, {}));
  return order;
}

absl::StatusOr<MegatronOrder::Place> MegatronOrder::PlaceAt(int64_t row) const {
  Place place = {0, 0};
  MGC_ASSIGN_OR_RETURN(place.document, samples_.At(row, 0, documents_.rows()));
  MGC_ASSIGN_OR_RETURN(place.offset, samples_.At(row, 1, file_->tokens() + 1));
  return place;
}

// First token and tokens of the sequence at a place of the list.
absl::StatusOr<std::pair<int64_t, int64_t>> MegatronOrder::SequenceAt(int64_t document) const {
  MGC_ASSIGN_OR_RETURN(const int64_t sequence, documents_.At(document, 0, *file_->sequences()));
  MGC_ASSIGN_OR_RETURN(const int64_t begin, file_->SequenceBegin(sequence));
  MGC_ASSIGN_OR_RETURN(const int64_t end, file_->SequenceBegin(sequence + 1));
  return std::make_pair(begin, end - begin);
}

absl::Status MegatronOrder::Read(int64_t sample, int64_t from, int64_t vocabulary,
                                 absl::Span<int32_t> tokens) const {
  MGC_ASSIGN_OR_RETURN(const int64_t row, shuffle_.At(sample, 0, samples_.rows() - 1));
  MGC_ASSIGN_OR_RETURN(const Place first, PlaceAt(row));
  MGC_ASSIGN_OR_RETURN(const Place last, PlaceAt(row + 1));
  const int64_t to = from + static_cast<int64_t>(tokens.size());
  int64_t length = 0;  // of the sample, so far
  for (int64_t document = first.document; document <= last.document; ++document) {
    MGC_ASSIGN_OR_RETURN(const auto sequence, SequenceAt(document));
    const auto [begin, size] = sequence;
    const int64_t skipped = document == first.document ? first.offset : 0;
    const int64_t end = document == last.document ? last.offset + 1 : size;
    if (skipped > size || end > size) {
      return absl::InvalidArgumentError(absl::StrCat(samples_.name(), ": row ", row,
                                                     " is of tokens ", skipped, " to ", end,
                                                     " of a sequence of ", size));
    }
    const int64_t here = std::max<int64_t>(end - skipped, 0);
    const int64_t wanted_begin = std::clamp(from, length, length + here);
    const int64_t wanted_end = std::clamp(to, length, length + here);
    if (wanted_begin < wanted_end) {
      MGC_RETURN_IF_ERROR(
          file_->Read(begin + skipped + wanted_begin - length, vocabulary,
                      tokens.subspan(static_cast<size_t>(wanted_begin - from),
                                     static_cast<size_t>(wanted_end - wanted_begin))));
    }
    length += here;
    if (length > seq_length_ + 1) break;
  }
  if (length == seq_length_ + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(samples_.name(), ": sample ", row, " has ", length,
                   " tokens, and a sample of sequence length ", seq_length_, " has ",
                   seq_length_ + 1, "; the order is of other data or of another length"));
}

}  // namespace mgc
