// Training data: any file as a stream of byte tokens, cut into samples by a global index.
//
// Token ids are the byte values 0..255; id 256 occurs in no file and is reserved (padding, end of
// text), so the vocabulary is 257. Sample i of sequence length s is the s + 1 bytes from offset i *
// s: s inputs and, one further on, s targets; neighbours share one byte, so every byte but the
// first is a target exactly once in an epoch. Which rank reads a sample, and in which micro-batch,
// is not known here.
#ifndef MGC_RUNTIME_DATA_DATA_H_
#define MGC_RUNTIME_DATA_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

inline constexpr int32_t kByteVocabulary = 257;
inline constexpr int32_t kReservedToken = 256;

// Immutable; copies share the bytes. Safe to read from many threads.
class ByteDataset {
 public:
  // Reads all of `path`, so that a file that changes later changes nothing. Errors of ReadFile, and
  // InvalidArgument if it holds fewer than seq_length + 1 bytes. seq_length >= 1.
  static absl::StatusOr<ByteDataset> Open(const std::string& path, int64_t seq_length);

  // The same of `bytes` in memory; `name` stands for the file in messages.
  static absl::StatusOr<ByteDataset> FromBytes(std::string bytes, int64_t seq_length,
                                               absl::string_view name);

  int64_t seq_length() const { return seq_length_; }
  int64_t tokens() const { return static_cast<int64_t>(bytes_.size()); }

  // floor((tokens - 1) / seq_length), at least 1. Bytes beyond the last sample are not used.
  int64_t samples_per_epoch() const { return (tokens() - 1) / seq_length_; }

  // Copies the s + 1 tokens of a sample; an index past the epoch wraps into the next one. sample >=
  // 0, and `tokens` has s + 1 elements: inputs are its first s, targets its last s.
  void CopySample(int64_t sample, absl::Span<int32_t> tokens) const;

  // Splits off the last `tail_samples` samples, with the one byte more that they need, for
  // evaluation: {the rest, the tail}. No byte is in both. InvalidArgument with the numbers if less
  // than one sample would remain.
  absl::StatusOr<std::pair<ByteDataset, ByteDataset>> HoldBackTail(int64_t tail_samples) const;

 private:
  ByteDataset(std::shared_ptr<const std::string> owner, absl::string_view bytes, int64_t seq_length,
              std::string name);

  std::shared_ptr<const std::string> owner_;
  absl::string_view bytes_;  // within *owner_
  int64_t seq_length_;
  std::string name_;  // escaped
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_DATA_H_
