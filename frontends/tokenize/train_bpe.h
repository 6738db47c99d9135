// Makes a byte-level BPE vocabulary from a text.

#ifndef MGC_FRONTENDS_TOKENIZE_TRAIN_BPE_H_
#define MGC_FRONTENDS_TOKENIZE_TRAIN_BPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "frontends/tokenize/split_pattern.h"
#include "frontends/tokenize/tokenizer.h"

namespace mgc {

// How often every word occurs. Sums of counts do not depend on their order, and neither does what
// is trained on them.
class WordCounts {
 public:
  explicit WordCounts(SplitPattern pattern) : pattern_(pattern) {}

  // Adds the words of a document.
  void Add(absl::string_view text);

  SplitPattern pattern() const { return pattern_; }
  const absl::flat_hash_map<std::string, int64_t>& words() const { return words_; }

 private:
  SplitPattern pattern_;
  absl::flat_hash_map<std::string, int64_t> words_;
};

// The end of a document and the bytes.
inline constexpr int64_t kLeastTrainedVocabulary = 257;

// Id 0 is `<|endoftext|>`, which ends documents; ids 1 to 256 are the bytes, in the order of the
// characters that spell them; then come merges, each of the pair of neighbours that is most
// frequent in all words. Of equally frequent ones the pair whose left token has the smaller id is
// merged, then the one whose right token has. It ends with `vocabulary_size` tokens, at least
// kLeastTrainedVocabulary, or with fewer when no two tokens are neighbours any more.
Tokenizer TrainBpe(const WordCounts& counts, int64_t vocabulary_size);

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_TRAIN_BPE_H_
