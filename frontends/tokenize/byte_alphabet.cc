#include "frontends/tokenize/byte_alphabet.h"

#include <array>

#include "frontends/tokenize/characters.h"

namespace mgc {
namespace {

constexpr int kBytes = 256;
constexpr int kFirstSubstitute = 0x100;

constexpr bool StandsForItself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174);
}

constexpr std::array<int, kBytes> MakeSpellings() {
  std::array<int, kBytes> spellings = {};
  int substitute = kFirstSubstitute;
  for (int byte = 0; byte < kBytes; ++byte) {
    spellings[static_cast<size_t>(byte)] = StandsForItself(byte) ? byte : substitute++;
  }
  return spellings;
}

constexpr std::array<int, kBytes> kSpellings = MakeSpellings();
// Behind the last substitute.
constexpr int kEnd = kFirstSubstitute + 68;

constexpr std::array<int, kEnd> MakeBytes() {
  std::array<int, kEnd> bytes = {};
  for (int& byte : bytes) byte = -1;
  for (int byte = 0; byte < kBytes; ++byte) {
    bytes[static_cast<size_t>(kSpellings[static_cast<size_t>(byte)])] = byte;
  }
  return bytes;
}

constexpr std::array<int, kEnd> kBytesOf = MakeBytes();

}  // namespace

int SpellingOf(unsigned char byte) { return kSpellings[byte]; }

std::string SpellBytes(absl::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) {
    const int character = SpellingOf(static_cast<unsigned char>(byte));
    if (character < 0x80) {
      spelling += static_cast<char>(character);
    } else {  // all are below U+0800: two bytes
      spelling += static_cast<char>(0xc0 | (character >> 6));
      spelling += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return spelling;
}

absl::optional<std::string> BytesSpelled(absl::string_view spelling) {
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    const Character character = CharacterAt(spelling, at);
    const int byte = character.code_point < 0 || character.code_point >= kEnd
                         ? -1
                         : kBytesOf[static_cast<size_t>(character.code_point)];
    if (byte < 0) return absl::nullopt;
    bytes += static_cast<char>(byte);
    at += character.bytes;
  }
  return bytes;
}

}  // namespace mgc
