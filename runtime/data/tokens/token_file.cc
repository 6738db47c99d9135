#include "runtime/data/tokens/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "runtime/data/tokens/even_place.h"
#include "runtime/data/tokens/token_paths.h"

namespace mgc {
namespace {

// Bytes that are read at a time, on the stack: reading allocates nothing.
constexpr int64_t kBlockBytes = 16384;
// Tokens that CheckVocabulary looks at in one place: a disk that must seek does so rarely.
constexpr int64_t kLookTokens = int64_t{1} << 20;

bool IsPipe(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_fifo(path, error);
}

// The kind of llm.c's file that begins like this, or null.
const LlmCKind* LlmCKindOf(absl::string_view begin) {
  if (begin.size() < 4) return nullptr;
  const auto magic = static_cast<int32_t>(NumberAt(begin.data(), 4));
  for (const LlmCKind& kind : LlmCKinds()) {
    if (kind.magic == magic) return &kind;
  }
  return nullptr;
}

absl::Status CheckLlmC(const PositionalFile& file, const LlmCKind& kind, int64_t* tokens) {
  const auto wrong = [&file](const auto&... text) {
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeBytes(file.path()), ", a token file of llm.c: ", text...));
  };
  if (file.bytes() < kLlmCHeaderBytes) {
    return wrong("it has ", file.bytes(), " bytes, and its header would have ", kLlmCHeaderBytes);
  }
  std::array<char, 12> header;
  MGC_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(header)));
  const auto version = static_cast<int32_t>(NumberAt(header.data() + 4, 4));
  if (version != kind.version) {
    return wrong("version ", version, "; of magic number ", kind.magic, " version ", kind.version,
                 " is read");
  }
  const auto count = static_cast<int32_t>(NumberAt(header.data() + 8, 4));
  const int64_t expected = kLlmCHeaderBytes + count * SizeOf(kind.type);
  if (count < 0 || file.bytes() != expected) {
    return wrong("its header says ", count, " tokens of ", NameOf(kind.type), ", and it has ",
                 file.bytes(), " bytes, not ", expected);
  }
  *tokens = count;
  return absl::OkStatus();
}

// Widens `count` numbers; the place of the first that is outside of [0, most], else `count`.
template <typename Number>
int64_t Widen(const char* bytes, int64_t count, int64_t most, int32_t* tokens) {
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<int64_t>(static_cast<Number>(NumberAt(
        bytes + i * static_cast<int64_t>(sizeof(Number)), static_cast<int64_t>(sizeof(Number)))));
    if (number < 0 || number > most) return i;
    tokens[i] = static_cast<int32_t>(number);
  }
  return count;
}

int64_t WidenAny(TokenType type, const char* bytes, int64_t count, int64_t most, int32_t* tokens) {
  switch (type) {
    case TokenType::kU8:
      return Widen<uint8_t>(bytes, count, most, tokens);
    case TokenType::kU16:
      return Widen<uint16_t>(bytes, count, most, tokens);
    case TokenType::kI32:
      return Widen<int32_t>(bytes, count, most, tokens);
    case TokenType::kU32:
      return Widen<uint32_t>(bytes, count, most, tokens);
    case TokenType::kI64:
      return Widen<int64_t>(bytes, count, most, tokens);
  }
  return 0;
}

// For messages: as its type writes it.
std::string IdText(TokenType type, const char* bytes) {
  const uint64_t number = NumberAt(bytes, SizeOf(type));
  if (type == TokenType::kI32) return absl::StrCat(static_cast<int32_t>(number));
  if (type == TokenType::kI64) return absl::StrCat(static_cast<int64_t>(number));
  return absl::StrCat(number);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TokenFile>> TokenFile::Open(const std::string& path) {
  const std::vector<std::string> files = FilesBehind(path);
  if (files.size() > 1) return OpenPair(PrefixOf(files[0]));
  if (IsPipe(path)) {
    MGC_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
    return FromBytes(std::move(bytes), path);
  }
  return OpenSingle(path);
}

std::shared_ptr<const TokenFile> TokenFile::FromBytes(std::string bytes, absl::string_view name) {
  std::shared_ptr<TokenFile> file(
      new TokenFile(EscapeBytes(name), TokenFormat::kBytes, TokenType::kU8));
  file->tokens_ = static_cast<int64_t>(bytes.size());
  file->bytes_ = std::move(bytes);
  return file;
}

std::shared_ptr<const TokenFile> TokenFile::FromTokens(absl::Span<const int32_t> tokens,
                                                       absl::string_view name) {
  std::shared_ptr<TokenFile> file(
      new TokenFile(EscapeBytes(name), TokenFormat::kMemory, TokenType::kI32));
  file->tokens_ = static_cast<int64_t>(tokens.size());
  file->bytes_.reserve(tokens.size() * sizeof(int32_t));
  for (const int32_t token : tokens) {
    AppendNumber(static_cast<uint32_t>(token), SizeOf(TokenType::kI32), &file->bytes_);
  }
  return file;
}

std::shared_ptr<const TokenFile> TokenFile::Mock(uint64_t seed, int64_t vocabulary) {
  MGC_CHECK(vocabulary > 0) << vocabulary;
  std::shared_ptr<TokenFile> file(new TokenFile("mock data", TokenFormat::kMock, TokenType::kI32));
  file->tokens_ = kMockTokens;
  file->mock_ = MockSource{seed, vocabulary};
  return file;
}

absl::StatusOr<std::shared_ptr<const TokenFile>> TokenFile::OpenPair(const std::string& prefix) {
  MGC_ASSIGN_OR_RETURN(PositionalFile bin, PositionalFile::Open(prefix + ".bin"));
  MGC_ASSIGN_OR_RETURN(PositionalFile idx, PositionalFile::Open(prefix + ".idx"));
  MGC_ASSIGN_OR_RETURN(const IdxContent content, CheckIdx(idx, bin.bytes()));
  std::shared_ptr<TokenFile> file(
      new TokenFile(EscapeBytes(bin.path()), TokenFormat::kMegatron, content.type));
  file->tokens_ = bin.bytes() / SizeOf(content.type);
  file->idx_content_ = content;
  file->file_.emplace(std::move(bin));
  file->idx_.emplace(std::move(idx));
  return file;
}

absl::StatusOr<std::shared_ptr<const TokenFile>> TokenFile::OpenSingle(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(PositionalFile on_disk, PositionalFile::Open(path));
  std::array<char, 4> begin;
  const auto known = static_cast<size_t>(std::min<int64_t>(on_disk.bytes(), begin.size()));
  MGC_RETURN_IF_ERROR(on_disk.Read(0, absl::MakeSpan(begin.data(), known)));
  const LlmCKind* llmc = LlmCKindOf({begin.data(), known});
  const bool is_bin = absl::EndsWith(path, ".bin");
  const TokenFormat format = llmc != nullptr ? TokenFormat::kLlmC
                             : is_bin        ? TokenFormat::kNanoGpt
                                             : TokenFormat::kBytes;
  const TokenType type = llmc != nullptr ? llmc->type : is_bin ? TokenType::kU16 : TokenType::kU8;
  std::shared_ptr<TokenFile> file(new TokenFile(EscapeBytes(path), format, type));
  if (llmc != nullptr) {
    file->header_bytes_ = kLlmCHeaderBytes;
    MGC_RETURN_IF_ERROR(CheckLlmC(on_disk, *llmc, &file->tokens_));
  } else if (on_disk.bytes() % SizeOf(type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->name_, ", a token file of nanoGPT: it has ", on_disk.bytes(),
                     " bytes, which are no whole tokens of u16"));
  } else {
    file->tokens_ = on_disk.bytes() / SizeOf(type);
  }
  file->file_.emplace(std::move(on_disk));
  return file;
}

absl::optional<int64_t> TokenFile::documents() const {
  if (!idx_.has_value()) return absl::nullopt;
  return idx_content_.documents;
}

absl::StatusOr<int64_t> TokenFile::DocumentBegin(int64_t document) const {
  MGC_CHECK(idx_.has_value() && document >= 0 && document <= idx_content_.documents)
      << "document " << document << " of " << name_;
  if (document == idx_content_.documents) return tokens_;
  const int64_t bin_bytes = tokens_ * SizeOf(type_);
  MGC_ASSIGN_OR_RETURN(const int64_t offset,
                       DocumentOffset(*idx_, idx_content_, bin_bytes, document));
  return std::clamp<int64_t>(offset / SizeOf(type_), 0, tokens_);
}

absl::optional<int64_t> TokenFile::sequences() const {
  if (!idx_.has_value()) return absl::nullopt;
  return idx_content_.sequences;
}

absl::StatusOr<int64_t> TokenFile::SequenceBegin(int64_t sequence) const {
  MGC_CHECK(idx_.has_value() && sequence >= 0 && sequence <= idx_content_.sequences)
      << "sequence " << sequence << " of " << name_;
  MGC_ASSIGN_OR_RETURN(const int64_t offset,
                       SequenceOffset(*idx_, idx_content_, tokens_ * SizeOf(type_), sequence));
  return std::clamp<int64_t>(offset / SizeOf(type_), 0, tokens_);
}

absl::Status TokenFile::OutsideError(int64_t token, absl::string_view id,
                                     int64_t vocabulary) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": token ", token, " is ", id,
                   vocabulary > 0 ? absl::StrCat(", outside the vocabulary of ", vocabulary,
                                                 " (legal: 0 to ", vocabulary - 1, ")")
                                  : ", which is no token"));
}

absl::Status TokenFile::CheckVocabulary(int64_t begin, int64_t end, int64_t vocabulary,
                                        int64_t most) const {
  MGC_CHECK(vocabulary > 0 && begin >= 0 && begin <= end && end <= tokens_)
      << begin << " " << end << " " << vocabulary;
  const int64_t largest_possible = mock_.has_value() ? mock_->vocabulary - 1 : LargestOf(type_);
  if (largest_possible < vocabulary || begin == end) return absl::OkStatus();
  const int64_t places = (end - begin + kLookTokens - 1) / kLookTokens;
  const int64_t looks = std::clamp<int64_t>((most + kLookTokens - 1) / kLookTokens, 1, places);
  std::vector<int32_t> tokens;
  absl::Status first;
  int64_t looked = 0;
  int64_t outside = 0;
  int32_t largest = 0;
  for (int64_t look = 0; look < looks; ++look) {
    const int64_t at = begin + EvenPlace(look, looks, places) * kLookTokens;
    tokens.resize(static_cast<size_t>(std::min(kLookTokens, end - at)));
    absl::Status read = Read(at, 0, absl::MakeSpan(tokens));
    if (!read.ok()) return first.ok() ? read : first;
    looked += static_cast<int64_t>(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] < vocabulary) continue;
      largest = std::max(largest, tokens[i]);
      if (outside++ > 0) continue;
      first = OutsideError(at + static_cast<int64_t>(i), absl::StrCat(tokens[i]), vocabulary);
    }
  }
  if (outside == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(first.message(), "; of ", looked, " tokens looked at ", outside,
                   outside == 1 ? " is" : " are", " outside, the largest is ", largest));
}

void TokenFile::MakeUp(int64_t begin, absl::Span<int32_t> tokens) const {
  const uint64_t stream = StreamOf("mock data");
  int64_t run = -1;
  int64_t start = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t at = begin + static_cast<int64_t>(i);
    if (at / kMockRun != run) {
      run = at / kMockRun;
      start = RandomBits(mock_->seed, stream, static_cast<uint64_t>(run)) % mock_->vocabulary;
    }
    tokens[i] = static_cast<int32_t>((start + at % kMockRun) % mock_->vocabulary);
  }
}

absl::Status TokenFile::ReadBytes(int64_t offset, absl::Span<char> out) const {
  if (file_.has_value()) return file_->Read(header_bytes_ + offset, out);
  std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return absl::OkStatus();
}

absl::Status TokenFile::Read(int64_t begin, int64_t vocabulary, absl::Span<int32_t> tokens) const {
  const auto count = static_cast<int64_t>(tokens.size());
  MGC_CHECK(begin >= 0 && begin + count <= tokens_)
      << "tokens " << begin << " to " << begin + count << " of " << name_;
  const int64_t size = SizeOf(type_);
  const int64_t most = vocabulary > 0 ? vocabulary - 1 : std::numeric_limits<int32_t>::max();
  if (mock_.has_value()) {
    MakeUp(begin, tokens);
    const auto* wrong =
        std::find_if(tokens.begin(), tokens.end(), [most](int32_t token) { return token > most; });
    if (wrong == tokens.end()) return absl::OkStatus();
    return OutsideError(begin + (wrong - tokens.begin()), absl::StrCat(*wrong), vocabulary);
  }
  std::array<char, kBlockBytes> block;
  for (int64_t first = 0; first < count; first += kBlockBytes / size) {
    const int64_t here = std::min(kBlockBytes / size, count - first);
    MGC_RETURN_IF_ERROR(ReadBytes((begin + first) * size,
                                  absl::MakeSpan(block.data(), static_cast<size_t>(here * size))));
    const int64_t good = WidenAny(type_, block.data(), here, most, tokens.data() + first);
    if (good == here) continue;
    return OutsideError(begin + first + good, IdText(type_, block.data() + good * size),
                        vocabulary);
  }
  return absl::OkStatus();
}

}  // namespace mgc
