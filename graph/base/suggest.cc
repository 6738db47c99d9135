#include "graph/base/suggest.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

// Longer names are typed by no one, and the distance costs the product of both lengths.
constexpr size_t kMaxLength = 128;

// The restricted Damerau-Levenshtein distance, three rows at a time.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

absl::string_view NearestName(absl::string_view name,
                              absl::Span<const absl::string_view> candidates) {
  if (name.size() > kMaxLength) return "";
  absl::string_view nearest;
  size_t least = 0;
  for (absl::string_view candidate : candidates) {
    size_t distance = EditDistance(name, candidate);
    if (distance * 3 > std::max(name.size(), candidate.size())) continue;
    if (nearest.empty() || distance < least) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, absl::Span<const absl::string_view> candidates) {
  absl::string_view nearest = NearestName(name, candidates);
  return nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)");
}

}  // namespace mgc
