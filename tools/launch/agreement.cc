#include "tools/launch/agreement.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/random.h"

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

std::string HashText(const std::string& bytes) { return absl::StrFormat("%016x", StreamOf(bytes)); }

}  // namespace mgc
