#include "runtime/data/tokens/idx_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kLengthBytes = 4;
constexpr int64_t kOffsetBytes = 8;
constexpr int64_t kModeBytes = 1;
// Numbers that are read at a time.
constexpr int64_t kBlock = int64_t{1} << 16;

template <typename... Text>
absl::Status Wrong(const PositionalFile& idx, const Text&... text) {
  return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(idx.path()), ": ", text...));
}

int64_t OffsetsBegin(int64_t sequences) { return kIdxHeaderBytes + sequences * kLengthBytes; }
int64_t DocumentsBegin(int64_t sequences) {
  return OffsetsBegin(sequences) + sequences * kOffsetBytes;
}

absl::StatusOr<IdxContent> ReadHeader(const PositionalFile& idx) {
  std::array<char, kIdxHeaderBytes> header;
  if (idx.bytes() < kIdxHeaderBytes) {
    return Wrong(idx, "it has ", idx.bytes(), " bytes, and the header of an .idx has ",
                 kIdxHeaderBytes);
  }
  MGC_RETURN_IF_ERROR(idx.Read(0, absl::MakeSpan(header)));
  const char* at = header.data();
  if (absl::string_view(at, kIdxMagic.size()) != kIdxMagic) {
    return Wrong(idx, "it begins with ", EscapeBytes({at, kIdxMagic.size()}), ", not with ",
                 EscapeBytes(kIdxMagic));
  }
  at += kIdxMagic.size();
  const uint64_t version = NumberAt(at, 8);
  if (version != kIdxVersion) return Wrong(idx, "version ", version, "; version 1 is read");
  const int code = static_cast<unsigned char>(at[8]);
  const absl::optional<TokenType> type = TypeOfIdxCode(code);
  if (!type.has_value()) {
    const absl::string_view name = IdxCodeName(code);
    return Wrong(idx, "tokens of type ", code, name.empty() ? "" : absl::StrCat(" (", name, ")"),
                 "; read are 1 (u8), 4 (i32), 5 (i64) and 8 (u16)");
  }
  const uint64_t sequences = NumberAt(at + 9, 8);
  const uint64_t entries = NumberAt(at + 17, 8);
  // What cannot be in the file is not multiplied.
  const auto most = static_cast<uint64_t>(idx.bytes());
  if (sequences > most || entries > most || entries < 1) {
    return Wrong(idx, sequences, " sequences and ", entries, " entries of documents in ",
                 idx.bytes(), " bytes");
  }
  IdxContent content;
  content.type = *type;
  content.sequences = static_cast<int64_t>(sequences);
  content.documents = static_cast<int64_t>(entries) - 1;
  const int64_t least = DocumentsBegin(content.sequences) + (content.documents + 1) * kOffsetBytes;
  const int64_t with_modes = least + content.sequences * kModeBytes;
  if (idx.bytes() != least && idx.bytes() != with_modes) {
    return Wrong(idx, "it has ", idx.bytes(), " bytes; ", sequences, " sequences and ", entries,
                 " entries of documents take ", least, ", with modes ", with_modes);
  }
  return content;
}

// Calls take(i, number) for `count` numbers of `size` bytes from `begin` on; ends with its error.
template <typename Take>
absl::Status ForEachNumber(const PositionalFile& idx, int64_t begin, int64_t size, int64_t count,
                           const Take& take) {
  std::vector<char> block(static_cast<size_t>(std::min(count, kBlock) * size));
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t here = std::min(kBlock, count - first);
    MGC_RETURN_IF_ERROR(idx.Read(
        begin + first * size, absl::MakeSpan(block).subspan(0, static_cast<size_t>(here * size))));
    for (int64_t i = 0; i < here; ++i) {
      MGC_RETURN_IF_ERROR(take(first + i, NumberAt(block.data() + i * size, size)));
    }
  }
  return absl::OkStatus();
}

// Lengths and offsets side by side.
absl::Status CheckSequences(const PositionalFile& idx, const IdxContent& content,
                            int64_t bin_bytes) {
  const int64_t size = SizeOf(content.type);
  int64_t end = 0;  // of the sequences before, in bytes
  std::vector<char> offsets;
  const auto check = [&](int64_t sequence, uint64_t number) {
    if (sequence % kBlock == 0) {
      offsets.resize(static_cast<size_t>(std::min(kBlock, content.sequences - sequence)) *
                     kOffsetBytes);
      MGC_RETURN_IF_ERROR(idx.Read(OffsetsBegin(content.sequences) + sequence * kOffsetBytes,
                                   absl::MakeSpan(offsets)));
    }
    const auto length = static_cast<int32_t>(number);
    if (length < 0) return Wrong(idx, "sequence ", sequence, " has the length ", length);
    const auto offset = static_cast<int64_t>(
        NumberAt(offsets.data() + sequence % kBlock * kOffsetBytes, kOffsetBytes));
    if (offset != end) {
      return Wrong(idx, "sequence ", sequence, " begins at byte ", offset,
                   "; those before it end at ", end);
    }
    end += length * size;
    if (end > bin_bytes) {
      return Wrong(idx, "sequence ", sequence, " ends at byte ", end, ", and the .bin has ",
                   bin_bytes);
    }
    return absl::OkStatus();
  };
  MGC_RETURN_IF_ERROR(ForEachNumber(idx, kIdxHeaderBytes, kLengthBytes, content.sequences, check));
  if (end == bin_bytes) return absl::OkStatus();
  return Wrong(idx, "its ", content.sequences, " sequences take ", end, " bytes of ",
               NameOf(content.type), ", and the .bin has ", bin_bytes);
}

absl::Status CheckDocuments(const PositionalFile& idx, const IdxContent& content) {
  int64_t before = 0;
  const auto check = [&](int64_t entry, uint64_t number) {
    const auto first = static_cast<int64_t>(number);
    const bool is_first = entry == 0;
    const bool is_last = entry == content.documents;
    if (first < before || first > content.sequences || (is_first && first != 0) ||
        (is_last && first != content.sequences)) {
      return Wrong(idx, "document ", entry, " begins with sequence ", first,
                   "; the one before with ", before, ", of ", content.sequences);
    }
    before = first;
    return absl::OkStatus();
  };
  return ForEachNumber(idx, DocumentsBegin(content.sequences), kOffsetBytes, content.documents + 1,
                       check);
}

}  // namespace

absl::StatusOr<IdxContent> CheckIdx(const PositionalFile& idx, int64_t bin_bytes) {
  MGC_ASSIGN_OR_RETURN(IdxContent content, ReadHeader(idx));
  MGC_RETURN_IF_ERROR(CheckSequences(idx, content, bin_bytes));
  MGC_RETURN_IF_ERROR(CheckDocuments(idx, content));
  return content;
}

absl::StatusOr<int64_t> SequenceOffset(const PositionalFile& idx, const IdxContent& content,
                                       int64_t bin_bytes, int64_t sequence) {
  if (sequence == content.sequences) return bin_bytes;
  std::array<char, kOffsetBytes> number;
  MGC_RETURN_IF_ERROR(
      idx.Read(OffsetsBegin(content.sequences) + sequence * kOffsetBytes, absl::MakeSpan(number)));
  return static_cast<int64_t>(NumberAt(number.data(), kOffsetBytes));
}

absl::StatusOr<int64_t> DocumentOffset(const PositionalFile& idx, const IdxContent& content,
                                       int64_t bin_bytes, int64_t document) {
  std::array<char, kOffsetBytes> number;
  MGC_RETURN_IF_ERROR(idx.Read(DocumentsBegin(content.sequences) + document * kOffsetBytes,
                               absl::MakeSpan(number)));
  const auto sequence = static_cast<int64_t>(NumberAt(number.data(), kOffsetBytes));
  if (sequence < 0 || sequence > content.sequences) {
    return Wrong(idx, "document ", document, " begins with sequence ", sequence, " of ",
                 content.sequences, "; it did not when the file was opened");
  }
  return SequenceOffset(idx, content, bin_bytes, sequence);
}

}  // namespace mgc
