// The vocabulary and the merges of a tokenizer's files, checked.

#ifndef MGC_FRONTENDS_TOKENIZE_BPE_LISTS_H_
#define MGC_FRONTENDS_TOKENIZE_BPE_LISTS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "frontends/tokenize/tokenizer.h"
#include "graph/base/diagnostic.h"
#include "graph/base/json.h"

namespace mgc {

// Collects them, with what is wrong (K1, K2) at its place. The merges may lie in a file of their
// own, with problems of its own.
class BpeLists {
 public:
  // Added tokens are first: a vocabulary may name them too, under the same ids, and then need not
  // spell them as bytes.
  void Add(const AddedToken& token, TextPlace place, FileDiagnostics* problems);
  // The object of ids by spelling.
  void AddVocabulary(const JsonValue& vocabulary, FileDiagnostics* problems);
  // The next merge, of two spellings.
  void AddMerge(absl::string_view left, absl::string_view right, TextPlace place,
                FileDiagnostics* problems);
  // Makes a token of the vocabulary an added one, if it is there.
  void AddFromVocabulary(absl::string_view content);

  // Tokens, merges and added tokens; the problem, if there is one, is put at `place`.
  TokenizerParts Take(TextPlace place, FileDiagnostics* problems);

 private:
  // Whether `id` is in range.
  static bool CheckId(const JsonValue& id, absl::string_view token, FileDiagnostics* problems);
  TokenId Find(absl::string_view bytes) const;

  TokenizerParts parts_;
  absl::flat_hash_map<std::string, TokenId> ids_;     // by bytes, of the vocabulary
  absl::flat_hash_map<std::string, TokenId> added_;   // by content
  absl::flat_hash_map<TokenId, std::string> holder_;  // of an id: its token's bytes or content
  absl::flat_hash_set<std::pair<TokenId, TokenId>> merged_;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_BPE_LISTS_H_
