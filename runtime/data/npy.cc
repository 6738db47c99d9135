#include "runtime/data/npy.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are read as they lie");

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr absl::string_view kVersion("\x01\x00", 2);
constexpr size_t kPrefixBytes = 10;  // magic, version, length of the header

// The dict that a header is. It holds text, a truth value and a tuple of sizes, each once.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : rest_(text) {}

  // None for anything else.
  absl::optional<NpyHeader> Read() {
    if (!Take("{")) return absl::nullopt;
    while (!Take("}")) {
      if (!ReadEntry()) return absl::nullopt;
      if (Take(",")) continue;
      if (!Take("}")) return absl::nullopt;
      break;
    }
    rest_ = absl::StripAsciiWhitespace(rest_);
    if (!rest_.empty() || seen_.size() != 3) return absl::nullopt;
    return header_;
  }

 private:
  bool Take(absl::string_view word) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, word);
  }

  bool ReadText(std::string* out) {
    const char quote = Take("'") ? '\'' : '"';
    if (quote == '"' && !Take("\"")) return false;
    const size_t end = rest_.find(quote);
    if (end == absl::string_view::npos) return false;
    *out = std::string(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return !absl::StrContains(*out, "\\");
  }

  bool ReadEntry() {
    std::string key;
    if (!ReadText(&key) || !seen_.emplace(key, true).second || !Take(":")) return false;
    if (key == "descr") return ReadText(&header_.descr);
    if (key == "shape") return ReadShape();
    if (key != "fortran_order") return false;
    header_.fortran_order = Take("True");
    return header_.fortran_order || Take("False");
  }

  // `()`, `(3,)`, `(3, 4)`, `(3, 4,)`.
  bool ReadShape() {
    if (!Take("(")) return false;
    while (!Take(")")) {
      rest_ = absl::StripLeadingAsciiWhitespace(rest_);
      size_t digits = 0;
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) ++digits;
      int64_t size = 0;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &size)) return false;
      header_.shape.push_back(size);
      rest_.remove_prefix(digits);
      const bool more = Take(",");
      // `(3)` is no tuple.
      if (!more) return header_.shape.size() > 1 && Take(")");
    }
    return true;
  }

  absl::string_view rest_;
  NpyHeader header_;
  std::map<std::string, bool> seen_;
};

// The number of values, or -1 where it overflows with `bytes` each.
int64_t ByteCount(const std::vector<int64_t>& shape, int64_t bytes) {
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

template <typename Stored, typename Kept>
absl::StatusOr<SampleTensor> TensorOf(NpyHeader header, absl::string_view values,
                                      absl::string_view name) {
  const int64_t bytes = ByteCount(header.shape, sizeof(Stored));
  SampleTensor tensor;
  tensor.shape = std::move(header.shape);
  std::vector<Stored> stored;
  if (bytes == static_cast<int64_t>(values.size())) {
    stored.resize(values.size() / sizeof(Stored));
    if (!stored.empty()) std::memcpy(stored.data(), values.data(), values.size());
    tensor.values = std::vector<Kept>(stored.begin(), stored.end());
    return tensor;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      EscapeBytes(name), ": behind the header lie ", values.size(), " bytes, its shape and type `",
      header.descr, "` take ", bytes < 0 ? "more than can be counted" : absl::StrCat(bytes)));
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes, absl::string_view name) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(name), why));
  };
  if (!absl::StartsWith(bytes, kMagic) || bytes.size() < kPrefixBytes) {
    return refused(" is no .npy file, or cut off");
  }
  if (bytes.substr(kMagic.size(), 2) != kVersion) {
    return refused(absl::StrCat(": version ", static_cast<unsigned char>(bytes[6]), ".",
                                static_cast<unsigned char>(bytes[7]),
                                " of the format; 1.0 is read"));
  }
  const size_t length = static_cast<unsigned char>(bytes[8]) +
                        static_cast<size_t>(static_cast<unsigned char>(bytes[9])) * 256;
  if (length > bytes.size() - kPrefixBytes) return refused(": cut off within its header");
  absl::optional<NpyHeader> header = HeaderReader(bytes.substr(kPrefixBytes, length)).Read();
  if (!header.has_value()) {
    return refused(": its header is no dict of `descr`, `fortran_order` and `shape`");
  }
  if (header->fortran_order) return refused(": it is in Fortran order; C order is read");
  header->bytes = static_cast<int64_t>(kPrefixBytes + length);
  return *std::move(header);
}

absl::StatusOr<SampleTensor> ParseNpy(absl::string_view bytes, absl::string_view name) {
  MGC_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(bytes, name));
  const absl::string_view values = bytes.substr(static_cast<size_t>(header.bytes));
  const std::string descr = header.descr;
  if (descr == "<f4") return TensorOf<float, float>(std::move(header), values, name);
  if (descr == "<i8") return TensorOf<int64_t, int64_t>(std::move(header), values, name);
  if (descr == "<i4") return TensorOf<int32_t, int64_t>(std::move(header), values, name);
  return absl::InvalidArgumentError(absl::StrCat(EscapeBytes(name), ": its type is `",
                                                 EscapeBytes(descr),
                                                 "`; `<f4`, `<i8` and `<i4` are read"));
}

}  // namespace mgc
