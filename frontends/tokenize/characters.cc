#include "frontends/tokenize/characters.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <array>

#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int32_t kAscii = 0x80;
constexpr Character kNoCharacter = {-1, 1};

CharacterClass LookUpClass(int32_t code_point) {
  if (u_isUWhiteSpace(code_point) != 0) return CharacterClass::kSpace;
  const uint32_t category = U_GET_GC_MASK(code_point);
  if ((category & U_GC_L_MASK) != 0) return CharacterClass::kLetter;
  if ((category & U_GC_N_MASK) != 0) return CharacterClass::kNumber;
  return CharacterClass::kOther;
}

constexpr CharacterClass ClassOfAscii(int32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharacterClass::kLetter;
  if (c >= '0' && c <= '9') return CharacterClass::kNumber;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return CharacterClass::kSpace;
  return CharacterClass::kOther;
}

// What the first byte of a sequence says: its length and its part of the code point.
struct Lead {
  size_t bytes;
  int32_t bits;
  int32_t least;  // code points below are overlong
};

Lead LeadOf(unsigned char byte) {
  if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1f, 0x80};
  if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0f, 0x800};
  if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07, 0x10000};
  return {1, -1, 0};
}

void AppendNormalized(const icu::Normalizer2& form, absl::string_view text, std::string* out) {
  UErrorCode error = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(out);
  form.normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
                     nullptr, error);
  MGC_CHECK(U_SUCCESS(error)) << u_errorName(error);
}

}  // namespace

Character CharacterAt(absl::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < kAscii) return {first, 1};
  const Lead lead = LeadOf(first);
  if (lead.bits < 0 || text.size() - at < lead.bytes) return kNoCharacter;
  int32_t code_point = lead.bits;
  for (size_t i = 1; i < lead.bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xc0) != 0x80) return kNoCharacter;
    code_point = code_point << 6 | (byte & 0x3f);
  }
  const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
  if (code_point < lead.least || surrogate || code_point > 0x10ffff) return kNoCharacter;
  return {code_point, lead.bytes};
}

CharacterClass ClassOf(int32_t code_point) {
  if (code_point < 0) return CharacterClass::kOther;
  return code_point < kAscii ? ClassOfAscii(code_point) : LookUpClass(code_point);
}

bool IsWordCharacter(int32_t code_point) {
  if (code_point < 0) return false;
  return u_isUAlphabetic(code_point) != 0 || u_hasBinaryProperty(code_point, UCHAR_JOIN_CONTROL) ||
         (U_GET_GC_MASK(code_point) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

size_t LastCharacter(absl::string_view text) {
  const size_t last = text.size() - 1;
  for (size_t bytes = 2; bytes <= std::min<size_t>(4, text.size()); ++bytes) {
    const size_t begin = text.size() - bytes;
    if (CharacterAt(text, begin).bytes == bytes) return begin;
  }
  return last;
}

std::string NormalizedNfc(absl::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* form = icu::Normalizer2::getNFCInstance(error);
  MGC_CHECK(U_SUCCESS(error)) << u_errorName(error);
  std::string normal;
  normal.reserve(text.size());
  size_t begin = 0;  // of UTF-8 that is not yet appended
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    if (character.code_point < 0) {
      AppendNormalized(*form, text.substr(begin, at - begin), &normal);
      normal += text[at];
      begin = at + 1;
    }
    at += character.bytes;
  }
  AppendNormalized(*form, text.substr(begin), &normal);
  return normal;
}

}  // namespace mgc
