// Characters of a text that claims to be UTF-8, and what Unicode says of them.

#ifndef MGC_FRONTENDS_TOKENIZE_CHARACTERS_H_
#define MGC_FRONTENDS_TOKENIZE_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace mgc {

struct Character {
  int32_t code_point;  // -1: a byte that is not UTF-8
  size_t bytes;        // from 1 to 4
};

// The character that begins at `at`, which lies in the text. Of what is not UTF-8 (cut or overlong
// sequences, surrogates) one byte.
Character CharacterAt(absl::string_view text, size_t at);

// What the patterns of pre-tokenizers tell apart: \p{L}, \p{N}, \s, and all else, which bytes
// that are not UTF-8 are too.
enum class CharacterClass : uint8_t { kLetter, kNumber, kSpace, kOther };
CharacterClass ClassOf(int32_t code_point);

// Whether a character is part of a word: \w.
bool IsWordCharacter(int32_t code_point);

// The begin of the last character of `text`, which is not empty.
size_t LastCharacter(absl::string_view text);

// Unicode's normalization form C, of the parts of `text` that are UTF-8.
std::string NormalizedNfc(absl::string_view text);

}  // namespace mgc

#endif  // MGC_FRONTENDS_TOKENIZE_CHARACTERS_H_
