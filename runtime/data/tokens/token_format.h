// The formats of token files: what is where in them.
//
//   bytes     any file: its bytes are tokens from 0 to 255
//   megatron  Megatron-LM's pair PREFIX.bin, the tokens of all documents one after the other, and
//             PREFIX.idx: "MMIDIDX\0\0", u64 1, u8 type, u64 sequences S, u64 entries D; then i32
//             lengths[S], i64 offsets[S] of sequences in bytes, i64 documents[D]: the first
//             sequence of each document, and S; perhaps i8 modes[S]
//   nanogpt   the tokens alone, as u16
//   mock      no file: tokens that are made up when they are read
//   memory    no file: tokens that somebody has
//   llmc      llm.c's: 256 i32, of which the first three are a magic number, a version and the
//   number
//             of tokens; then the tokens, u16 under one magic number, u32 under the other
//
// All numbers are little endian.

#ifndef MGC_RUNTIME_DATA_TOKENS_TOKEN_FORMAT_H_
#define MGC_RUNTIME_DATA_TOKENS_TOKEN_FORMAT_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace mgc {

enum class TokenFormat { kBytes, kMegatron, kNanoGpt, kLlmC, kMock, kMemory };
// `bytes`, `megatron`, `nanogpt`, `llmc`, `mock`, `memory`.
absl::string_view NameOf(TokenFormat format);
// Of files that hold tokens of any vocabulary: without `bytes`, `mock` and `memory`.
absl::Span<const absl::string_view> WrittenFormatNames();
absl::optional<TokenFormat> TokenFormatNamed(absl::string_view name);

enum class TokenType { kU8, kU16, kI32, kU32, kI64 };
int64_t SizeOf(TokenType type);            // in bytes
int64_t LargestOf(TokenType type);         // at most that of i64
absl::string_view NameOf(TokenType type);  // `u16`

// The type that files of a format have for ids below `vocabulary`; none where the format has none
// that is large enough.
absl::optional<TokenType> TypeFor(TokenFormat format, int64_t vocabulary);

// Little-endian numbers at the begin of `bytes`, which are long enough.
uint64_t NumberAt(const char* bytes, int64_t size);
void AppendNumber(uint64_t number, int64_t size, std::string* bytes);

inline constexpr absl::string_view kIdxMagic = absl::string_view("MMIDIDX\0\0", 9);
inline constexpr uint64_t kIdxVersion = 1;
inline constexpr int64_t kIdxHeaderBytes = 34;
// The number of a type in an .idx; none for types that cannot be tokens here.
absl::optional<TokenType> TypeOfIdxCode(int code);
int IdxCodeOf(TokenType type);
// What a code of Megatron-LM's stands for, for messages: `f64`; empty for one that is none.
absl::string_view IdxCodeName(int code);

inline constexpr int64_t kLlmCHeaderBytes = 1024;
inline constexpr int64_t kMaxLlmCTokens = std::numeric_limits<int32_t>::max();
struct LlmCKind {
  int32_t magic, version;
  TokenType type;
};
absl::Span<const LlmCKind> LlmCKinds();

// The paths of a pair, from the path of either or their common begin.
std::string PrefixOf(absl::string_view path);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_TOKEN_FORMAT_H_
