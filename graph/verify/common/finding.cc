#include "graph/verify/common/finding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mgc {

Finding FindingOf(const absl::Status& status, absl::string_view place,
                  absl::string_view otherwise) {
  Finding finding{std::string(otherwise), std::string(place), std::string(status.message()), "",
                  ""};
  const size_t at = finding.text.rfind(" [");
  if (at == std::string::npos || finding.text.back() != ']') return finding;
  const std::string label = finding.text.substr(at + 2, finding.text.size() - at - 3);
  const absl::string_view part = otherwise.substr(0, otherwise.find('_') + 1);
  if (!absl::StartsWith(label, part)) return finding;
  finding.label = label;
  finding.text.resize(at);
  return finding;
}

std::string ToString(const Finding& finding) {
  std::string text = absl::StrCat(finding.place, finding.place.empty() ? "" : ": ", finding.text,
                                  " [", finding.label, "]");
  if (!finding.detail.empty()) absl::StrAppend(&text, "\n", finding.detail);
  return text;
}

void Findings::Add(Finding finding) {
  const auto same = [&](const Finding& other) { return other.label == finding.label; };
  if (static_cast<size_t>(std::count_if(list_.begin(), list_.end(), same)) < kMostOfALabel) {
    list_.push_back(std::move(finding));
  } else {
    ++left_out_;
  }
}

void Findings::Append(const Findings& more) {
  for (const Finding& finding : more.list_) Add(finding);
  left_out_ += more.left_out_;
}

bool Findings::Has(absl::string_view label) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const Finding& finding) { return finding.label == label; });
}

}  // namespace mgc
