#include "runtime/data/tokens/token_format.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/strings/strip.h"

namespace mgc {
namespace {

constexpr absl::string_view kFormats[] = {"bytes", "megatron", "nanogpt", "llmc", "mock", "memory"};
constexpr size_t kFirstWritten = 1;
constexpr size_t kNumWritten = 3;

struct TypeTraits {
  absl::string_view name;
  int64_t size;
  int idx_code;  // 0: has none
};
constexpr TypeTraits kTypes[] = {
    {"u8", 1, 1}, {"u16", 2, 8}, {"i32", 4, 4}, {"u32", 4, 0}, {"i64", 8, 5}};
constexpr TokenType kAllTypes[] = {TokenType::kU8, TokenType::kU16, TokenType::kI32,
                                   TokenType::kU32, TokenType::kI64};

constexpr absl::string_view kIdxNames[] = {"",    "u8",  "i8",  "i16", "i32",
                                           "i64", "f64", "f32", "u16"};

constexpr LlmCKind kLlmCKinds[] = {{20240520, 1, TokenType::kU16}, {20240801, 7, TokenType::kU32}};

const TypeTraits& TraitsOf(TokenType type) { return kTypes[static_cast<size_t>(type)]; }

constexpr int64_t kU16Values = int64_t{1} << 16;
// Megatron-LM takes u16 below this vocabulary.
constexpr int64_t kMegatronU16Vocabulary = 65500;

}  // namespace

absl::string_view NameOf(TokenFormat format) { return kFormats[static_cast<size_t>(format)]; }

absl::Span<const absl::string_view> WrittenFormatNames() {
  return absl::MakeConstSpan(kFormats).subspan(kFirstWritten, kNumWritten);
}

absl::optional<TokenFormat> TokenFormatNamed(absl::string_view name) {
  const auto* found = std::find(std::begin(kFormats), std::end(kFormats), name);
  if (found == std::end(kFormats)) return absl::nullopt;
  return static_cast<TokenFormat>(found - std::begin(kFormats));
}

int64_t SizeOf(TokenType type) { return TraitsOf(type).size; }

int64_t LargestOf(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return std::numeric_limits<uint8_t>::max();
    case TokenType::kU16:
      return std::numeric_limits<uint16_t>::max();
    case TokenType::kI32:
      return std::numeric_limits<int32_t>::max();
    case TokenType::kU32:
      return std::numeric_limits<uint32_t>::max();
    case TokenType::kI64:
      break;
  }
  return std::numeric_limits<int64_t>::max();
}

absl::string_view NameOf(TokenType type) { return TraitsOf(type).name; }

absl::optional<TokenType> TypeFor(TokenFormat format, int64_t vocabulary) {
  switch (format) {
    case TokenFormat::kBytes:
      return vocabulary <= 256 ? absl::make_optional(TokenType::kU8) : absl::nullopt;
    case TokenFormat::kMegatron:
      return vocabulary < kMegatronU16Vocabulary ? TokenType::kU16 : TokenType::kI32;
    case TokenFormat::kNanoGpt:
      return vocabulary <= kU16Values ? absl::make_optional(TokenType::kU16) : absl::nullopt;
    case TokenFormat::kLlmC:
      return vocabulary <= kU16Values ? TokenType::kU16 : TokenType::kU32;
    case TokenFormat::kMock:
    case TokenFormat::kMemory:
      break;
  }
  return absl::nullopt;
}

uint64_t NumberAt(const char* bytes, int64_t size) {
  uint64_t number = 0;
  for (int64_t i = size - 1; i >= 0; --i) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

void AppendNumber(uint64_t number, int64_t size, std::string* bytes) {
  for (int64_t i = 0; i < size; ++i, number >>= 8) *bytes += static_cast<char>(number & 0xff);
}

absl::optional<TokenType> TypeOfIdxCode(int code) {
  for (const TokenType type : kAllTypes) {
    if (code != 0 && TraitsOf(type).idx_code == code) return type;
  }
  return absl::nullopt;
}

int IdxCodeOf(TokenType type) { return TraitsOf(type).idx_code; }

absl::string_view IdxCodeName(int code) {
  return code > 0 && code < static_cast<int>(std::size(kIdxNames))
             ? kIdxNames[static_cast<size_t>(code)]
             : "";
}

absl::Span<const LlmCKind> LlmCKinds() { return kLlmCKinds; }

std::string PrefixOf(absl::string_view path) {
  if (!absl::ConsumeSuffix(&path, ".bin")) absl::ConsumeSuffix(&path, ".idx");
  return std::string(path);
}

}  // namespace mgc
