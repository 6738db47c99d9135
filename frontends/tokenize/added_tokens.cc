#include "frontends/tokenize/added_tokens.h"

#include <algorithm>

#include "frontends/tokenize/characters.h"

namespace mgc {
namespace {

bool EndsWithWord(absl::string_view text) {
  return !text.empty() && IsWordCharacter(CharacterAt(text, LastCharacter(text)).code_point);
}

bool BeginsWithWord(absl::string_view text) {
  return !text.empty() && IsWordCharacter(CharacterAt(text, 0).code_point);
}

bool IsSpaceAt(absl::string_view text, size_t at) {
  return ClassOf(CharacterAt(text, at).code_point) == CharacterClass::kSpace;
}

size_t EndOfSpace(absl::string_view text, size_t at) {
  while (at < text.size() && IsSpaceAt(text, at)) at += CharacterAt(text, at).bytes;
  return at;
}

// Where the white space before `end` begins, from `least` on.
size_t BeginOfSpace(absl::string_view text, size_t least, size_t end) {
  while (end > least) {
    const size_t last = LastCharacter(text.substr(0, end));
    if (last < least || !IsSpaceAt(text, last)) break;
    end = last;
  }
  return end;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), ends_(1, nullptr) {
  for (const AddedToken& token : tokens_) {
    size_t node = 0;
    for (const char byte : token.content) {
      const auto [entry, is_new] = next_.try_emplace({node, byte}, ends_.size());
      if (is_new) ends_.push_back(nullptr);
      node = entry->second;
    }
    ends_[node] = &token;
  }
}

const AddedToken* AddedTokenFinder::LongestAt(absl::string_view text, size_t at) const {
  const AddedToken* longest = nullptr;
  size_t node = 0;
  for (; at < text.size(); ++at) {
    const auto next = next_.find({node, text[at]});
    if (next == next_.end()) break;
    node = next->second;
    if (ends_[node] != nullptr) longest = ends_[node];
  }
  return longest;
}

std::vector<TextPart> AddedTokenFinder::Parts(absl::string_view text) const {
  std::vector<TextPart> parts;
  size_t begin = 0;  // of what is in no part yet
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    const AddedToken* token = LongestAt(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t first = at;
    size_t end = at + token->content.size();
    at = end;
    if (token->single_word &&
        (EndsWithWord(text.substr(0, first)) || BeginsWithWord(text.substr(end)))) {
      continue;
    }
    if (token->lstrip) first = BeginOfSpace(text, begin, first);
    if (token->rstrip) end = EndOfSpace(text, end);
    if (first > begin) parts.push_back({kNoToken, text.substr(begin, first - begin)});
    parts.push_back({token->id, text.substr(first, end - first)});
    begin = end;
    at = end;
  }
  if (begin < text.size()) parts.push_back({kNoToken, text.substr(begin)});
  return parts;
}

}  // namespace mgc
