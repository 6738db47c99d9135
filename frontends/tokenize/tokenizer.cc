#include "frontends/tokenize/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontends/tokenize/characters.h"

namespace mgc {
namespace {

// Words above this length are rare: they are merged anew each time.
constexpr size_t kLongestRemembered = 48;
constexpr size_t kMostRemembered = size_t{1} << 17;

std::vector<AddedToken> Those(absl::Span<const AddedToken> added, bool normalized) {
  std::vector<AddedToken> those;
  std::copy_if(added.begin(), added.end(), std::back_inserter(those),
               [normalized](const AddedToken& token) { return token.normalized == normalized; });
  return those;
}

// What the tokens of a vocabulary stand for, and those added to it.
std::vector<std::string> WithAdded(std::vector<std::string> tokens,
                                   absl::Span<const AddedToken> added) {
  for (const AddedToken& token : added) {
    const auto id = static_cast<size_t>(token.id);
    if (id >= tokens.size()) tokens.resize(id + 1);
    tokens[id] = token.content;
  }
  return tokens;
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts)
    : added_(std::move(parts.added)),
      before_normalizing_(Those(added_, false)),
      after_normalizing_(Those(added_, true)),
      texts_(WithAdded(parts.tokens, added_)),
      vocabulary_(std::move(parts.tokens), std::move(parts.merges)),
      pattern_(parts.pattern),
      normalize_nfc_(parts.normalize_nfc),
      whole_words_first_(parts.whole_words_first),
      end_of_document_(parts.end_of_document) {}

absl::optional<TokenId> Tokenizer::Find(absl::string_view content) const {
  const auto found = std::find_if(added_.begin(), added_.end(), [content](const AddedToken& token) {
    return token.content == content;
  });
  if (found != added_.end()) return found->id;
  const TokenId id = vocabulary_.Find(content);
  return id == kNoToken ? absl::nullopt : absl::make_optional(id);
}

absl::Status Tokenizer::Decode(absl::Span<const TokenId> tokens, std::string* text) const {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary_size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token ", i, " is ", tokens[i], ", outside the vocabulary of ", vocabulary_size()));
    }
    text->append(TextOf(tokens[i]));
  }
  return absl::OkStatus();
}

Tokenizer ByteTokenizer() {
  constexpr TokenId kBytes = 256;
  TokenizerParts parts;
  for (TokenId byte = 0; byte < kBytes; ++byte)
    parts.tokens.emplace_back(1, static_cast<char>(byte));
  parts.tokens.emplace_back();
  parts.end_of_document = kBytes;
  return Tokenizer(std::move(parts));
}

std::unique_ptr<TextEncoder> Tokenizer::NewEncoder() const {
  return std::make_unique<Encoder>(*this);
}

void Encoder::Append(absl::string_view text, std::vector<TokenId>* tokens) {
  for (const TextPart& part : tokenizer_.before_normalizing_.Parts(text)) {
    if (part.added != kNoToken) {
      tokens->push_back(part.added);
    } else if (tokenizer_.normalize_nfc_ && !IsAscii(part.text)) {
      AppendNormalized(NormalizedNfc(part.text), tokens);
    } else {
      AppendNormalized(part.text, tokens);
    }
  }
}

void Encoder::AppendNormalized(absl::string_view text, std::vector<TokenId>* tokens) {
  for (const TextPart& part : tokenizer_.after_normalizing_.Parts(text)) {
    if (part.added != kNoToken) {
      tokens->push_back(part.added);
    } else {
      AppendWords(part.text, tokens);
    }
  }
}

void Encoder::AppendWords(absl::string_view text, std::vector<TokenId>* tokens) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = WordEnd(tokenizer_.pattern_, text, begin);
    AppendWord(text.substr(begin, end - begin), tokens);
    begin = end;
  }
}

void Encoder::AppendWord(absl::string_view word, std::vector<TokenId>* tokens) {
  if (tokenizer_.whole_words_first_) {
    const TokenId whole = tokenizer_.vocabulary_.Find(word);
    if (whole != kNoToken) {
      tokens->push_back(whole);
      return;
    }
  }
  if (word.size() > kLongestRemembered) {
    merger_.Append(word, tokens);
    return;
  }
  auto found = remembered_.find(word);
  if (found == remembered_.end()) {
    if (remembered_.size() == kMostRemembered) {
      remembered_.clear();
      remembered_tokens_.clear();
    }
    const size_t begin = remembered_tokens_.size();
    merger_.Append(word, &remembered_tokens_);
    const Remembered entry = {begin, remembered_tokens_.size() - begin};
    found = remembered_.emplace(std::string(word), entry).first;
  }
  const auto first = remembered_tokens_.begin() + static_cast<ptrdiff_t>(found->second.begin);
  tokens->insert(tokens->end(), first, first + static_cast<ptrdiff_t>(found->second.count));
}

}  // namespace mgc
