// Tokens that are found in a text as they are written, before it falls into words: `<|endoftext|>`.

#ifndef MGC_FRONTENDS_TOKENIZE_ADDED_TOKENS_H_
#define MGC_FRONTENDS_TOKENIZE_ADDED_TOKENS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "frontends/tokenize/vocabulary.h"

namespace mgc {

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;  // not empty
  // Taken only where no character of a word stands beside it.
  bool single_word = false;
  // Takes the white space before or behind it along.
  bool lstrip = false;
  bool rstrip = false;
  // Is looked for when the text has been normalized, not before.
  bool normalized = false;
  bool special = false;  // of the text's structure; changes nothing in how it is found
};

// A part of a text: an added token, or what lies between two.
struct TextPart {
  TokenId added = kNoToken;
  absl::string_view text;  // as it stands in the text
};

// Finds any of some tokens in a text: of those that begin first the longest. Immutable.
class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);
  AddedTokenFinder(AddedTokenFinder&&) = default;
  AddedTokenFinder& operator=(AddedTokenFinder&&) = default;
  AddedTokenFinder(const AddedTokenFinder&) = delete;
  AddedTokenFinder& operator=(const AddedTokenFinder&) = delete;

  bool empty() const { return tokens_.empty(); }
  // The parts of `text`, in order; none of them is empty.
  std::vector<TextPart> Parts(absl::string_view text) const;

 private:
  // The longest token that begins at `at`, or null.
  const AddedToken* LongestAt(absl::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  // The tree of their bytes: from a node, by a byte, to the next one. Node 0 is the root.
  absl::flat_hash_map<std::pair<size_t, char>, size_t> next_;
  std::vector<const AddedToken*> ends_;  // of a node, the token that ends there, or null
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_ADDED_TOKENS_H_
