#include "graph/text/diagnostics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"

namespace mgc {

Diagnostics::Diagnostics(absl::string_view filename) : filename_(EscapeBytes(filename)) {}

std::string Diagnostics::At(TextPlace place) const {
  return absl::StrCat(filename_, ":", place.line, ":", place.column);
}

void Diagnostics::Error(TextPlace place, absl::string_view label, absl::string_view message) {
  if (++count_ > kMaxErrors) return;
  std::string text = absl::StrCat(At(place), ": error: ", message);
  if (!label.empty()) absl::StrAppend(&text, " [", label, "]");
  entries_.push_back({place, std::move(text)});
}

void Diagnostics::Note(absl::string_view message) {
  if (count_ == 0 || count_ > kMaxErrors) return;
  absl::StrAppend(&entries_.back().text, "\n  note: ", message);
}

void Diagnostics::Note(TextPlace place, absl::string_view message) {
  Note(absl::StrCat(message, " at ", At(place)));
}

absl::Status Diagnostics::ToStatus() const {
  if (ok()) return absl::OkStatus();
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::make_pair(a.place.line, a.place.column) <
           std::make_pair(b.place.line, b.place.column);
  });
  std::string text = absl::StrJoin(
      sorted, "\n", [](std::string* out, const Entry& entry) { out->append(entry.text); });
  if (count_ > kMaxErrors) {
    absl::StrAppend(&text, "\n", filename_, ": ", count_ - kMaxErrors, " more errors");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace mgc
