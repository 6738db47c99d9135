#include "passes/config/optimizer_config.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

constexpr absl::string_view kRate = "lr";
constexpr absl::string_view kDecay = "decay";

// What is wrong with `lr=0.1`, which changes `group`; empty if nothing is.
std::string ReadFactor(absl::string_view text, ParamGroup* group) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  if (parts.first != kRate && parts.first != kDecay) {
    return absl::StrCat("`", EscapeBytes(parts.first), "` is neither lr nor decay",
                        DidYouMean(parts.first, {kRate, kDecay}));
  }
  double value = 0;
  if (!absl::SimpleAtod(parts.second, &value) || !std::isfinite(value) || value < 0) {
    return absl::StrCat(parts.first, " is multiplied by `", EscapeBytes(parts.second),
                        "`, which is no finite number of at least 0");
  }
  (parts.first == kRate ? group->lr : group->decay) = value;
  return "";
}

absl::StatusOr<ParamGroup> ParseParamGroup(absl::string_view text) {
  // The last colon: names of parameters may have some of their own.
  const size_t colon = text.rfind(':');
  ParamGroup group;
  group.pattern = std::string(text.substr(0, colon == absl::string_view::npos ? 0 : colon));
  std::vector<std::string> faults;
  if (group.pattern.empty()) faults.emplace_back("there is no PATTERN: before the factors");
  const absl::string_view factors =
      colon == absl::string_view::npos ? text : text.substr(colon + 1);
  for (absl::string_view factor : absl::StrSplit(factors, ',')) {
    std::string fault = ReadFactor(factor, &group);
    if (!fault.empty()) faults.push_back(std::move(fault));
  }
  if (faults.empty()) return group;
  return absl::InvalidArgumentError(absl::StrJoin(faults, "; "));
}

std::string TextOf(const ParamGroup& group) {
  std::vector<std::string> factors;
  if (group.lr != 1 || group.decay == 1)
    factors.push_back(absl::StrCat(kRate, "=", JsonNumber(group.lr)));
  if (group.decay != 1) factors.push_back(absl::StrCat(kDecay, "=", JsonNumber(group.decay)));
  return absl::StrCat(group.pattern, ":", absl::StrJoin(factors, ","));
}

}  // namespace

absl::StatusOr<std::vector<ParamGroup>> ParseParamGroups(absl::string_view text) {
  std::vector<ParamGroup> groups;
  std::vector<std::string> faults;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    absl::StatusOr<ParamGroup> group = ParseParamGroup(part);
    if (group.ok()) {
      groups.push_back(*std::move(group));
    } else {
      faults.emplace_back(group.status().message());
    }
  }
  if (faults.empty()) return groups;
  return absl::InvalidArgumentError(absl::StrJoin(faults, "; "));
}

std::string ToString(const std::vector<ParamGroup>& groups) {
  return absl::StrJoin(groups, ";", [](std::string* text, const ParamGroup& group) {
    absl::StrAppend(text, TextOf(group));
  });
}

bool Matches(absl::string_view pattern, absl::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = absl::string_view::npos;  // the last one passed, ...
  size_t taken = 0;                       // ... and where what it does not stand for begins
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace mgc
