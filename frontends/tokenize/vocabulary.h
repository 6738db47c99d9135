// Tokens and merges: what a byte-level BPE tokenizer knows of bytes, but not of words.

#ifndef MGC_FRONTENDS_TOKENIZE_VOCABULARY_H_
#define MGC_FRONTENDS_TOKENIZE_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace mgc {

using TokenId = int32_t;

inline constexpr TokenId kNoToken = -1;
// Far above every vocabulary that is in use; a file may not ask for more memory than this.
inline constexpr int64_t kMaxTokenId = int64_t{1} << 22;

// Two neighbours become one token. The earlier a merge stands in its list, the earlier it is done.
struct Merge {
  TokenId left, right, merged;
};

// Immutable.
class Vocabulary {
 public:
  // `tokens[id]` are a token's bytes; an id that stands for nothing has none. All 256 single bytes
  // are among them. Ids in `merges` are below tokens.size(), and no pair is in it twice.
  Vocabulary(std::vector<std::string> tokens, std::vector<Merge> merges);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // One more than the largest id.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::string& BytesOf(TokenId id) const { return tokens_[static_cast<size_t>(id)]; }
  // The token with these bytes, or kNoToken.
  TokenId Find(absl::string_view bytes) const;
  TokenId OfByte(unsigned char byte) const { return of_byte_[byte]; }
  absl::Span<const Merge> merges() const { return merges_; }

  // The place in merges() of the merge of two neighbours; kNoRank without one.
  static constexpr int32_t kNoRank = -1;
  int32_t RankOf(TokenId left, TokenId right) const;

 private:
  std::vector<std::string> tokens_;
  std::vector<Merge> merges_;
  absl::flat_hash_map<absl::string_view, TokenId> ids_;  // of strings in tokens_
  absl::flat_hash_map<std::pair<TokenId, TokenId>, int32_t> ranks_;
  std::array<TokenId, 256> of_byte_ = {};
};

// Merges the bytes of words. One a thread.
class WordMerger {
 public:
  // `vocabulary` outlives it.
  explicit WordMerger(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Appends the tokens of `word`, below 2^31 bytes: of all merges that are possible the one of the
  // lowest rank is done, the leftmost of several, until there is none. In n log n steps.
  void Append(absl::string_view word, std::vector<TokenId>* tokens);

 private:
  // A token of the word, in a list that merges make shorter.
  struct Symbol {
    TokenId token;
    int32_t previous, next;  // -1: none
    int32_t rank;            // of its merge with the next one, or kNoRank
  };
  struct Candidate {
    int32_t rank;
    int32_t place;                                  // of the left symbol
    bool operator<(const Candidate& other) const {  // the first is the greatest: std::*_heap
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };

  void Offer(int32_t place);
  void MergeWithNext(int32_t place);

  const Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_VOCABULARY_H_
