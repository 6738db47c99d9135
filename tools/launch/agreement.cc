#include "tools/launch/agreement.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/positional_file.h"
#include "graph/base/random.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr char kBehindName = '\x1f';
constexpr char kBehindTerm = '\x1e';

Terms Unpack(const std::string& packed) {
  Terms terms;
  for (absl::string_view term : absl::StrSplit(packed, kBehindTerm, absl::SkipEmpty())) {
    terms.push_back(absl::StrSplit(term, absl::MaxSplits(kBehindName, 1)));
  }
  return terms;
}

}  // namespace

std::string PackTerms(const Terms& terms) {
  std::string packed;
  for (const auto& [name, value] : terms) {
    absl::StrAppend(&packed, name, std::string(1, kBehindName), value, std::string(1, kBehindTerm));
  }
  return packed;
}

absl::Status CheckTerms(const std::vector<std::string>& packed) {
  const Terms first = Unpack(packed[0]);
  std::string differences;
  for (size_t process = 1; process < packed.size() && differences.empty(); ++process) {
    const Terms terms = Unpack(packed[process]);
    for (size_t t = 0; t < first.size(); ++t) {
      const std::string theirs = t < terms.size() ? terms[t].second : "nothing";
      if (theirs == first[t].second) continue;
      absl::StrAppend(&differences, differences.empty() ? "" : "\n", "processes 0 and ", process,
                      " have different ", first[t].first, ": `", EscapeBytes(first[t].second),
                      "` and `", EscapeBytes(theirs), "`");
    }
  }
  return differences.empty() ? absl::OkStatus() : absl::FailedPreconditionError(differences);
}

std::string HashText(absl::string_view bytes) { return absl::StrFormat("%016x", StreamOf(bytes)); }

namespace {

constexpr int64_t kHashedWhole = int64_t{64} << 20;
constexpr int64_t kPlaces = 1024;
constexpr size_t kPlaceBytes = 4096;

absl::StatusOr<std::string> HashPlaces(const PositionalFile& file) {
  std::string hash = absl::StrCat(file.bytes());
  std::string block(kPlaceBytes, '\0');
  const int64_t last = file.bytes() - static_cast<int64_t>(kPlaceBytes);
  for (int64_t place = 0; place < kPlaces; ++place) {
    // The distance first: the product of both may be more than 63 bits hold.
    const int64_t offset = last / (kPlaces - 1) * place;
    MGC_RETURN_IF_ERROR(file.Read(offset, absl::MakeSpan(block.data(), block.size())));
    hash = HashText(absl::StrCat(hash, HashText(block)));
  }
  MGC_RETURN_IF_ERROR(file.Read(last, absl::MakeSpan(block.data(), block.size())));
  return HashText(absl::StrCat(hash, HashText(block)));
}

}  // namespace

absl::StatusOr<std::string> HashFile(const std::string& path) {
  std::string hash;
  const absl::StatusOr<PositionalFile> file = PositionalFile::Open(path);
  if (file.ok() && file->bytes() > kHashedWhole) return HashPlaces(*file);
  MGC_RETURN_IF_ERROR(ReadPieces(path, [&hash](absl::string_view piece) {
    hash = HashText(absl::StrCat(hash, HashText(piece)));
    return absl::OkStatus();
  }));
  return hash;
}

std::string HashMathematics() {
  constexpr int kNumbers = 4096;
  std::string bytes;
  const auto append = [&bytes](auto result) {
    char raw[sizeof(result)];
    std::memcpy(raw, &result, sizeof(result));
    bytes.append(raw, sizeof(raw));
  };
  double x = 1e-3;
  for (int i = 0; i < kNumbers; ++i, x *= 1.004) {
    append(std::log(static_cast<float>(x)));
    append(std::log(x));
    append(std::pow(x, 1.5 + 1e-3 * i));
    append(std::cos(x));
  }
  return HashText(bytes);
}

}  // namespace mgc
