#include "tools/views/page/testing/markup_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace mgc {

std::string FlawOf(absl::string_view text) {
  std::vector<std::string> open;
  if (!absl::ConsumePrefix(&text, "<!DOCTYPE html>")) return "no document type";
  while (!text.empty()) {
    if (text[0] != '<') {
      const size_t end = std::min(text.find('<'), text.size());
      for (size_t at = text.find('&'); at < end; at = text.find('&', at + 1)) {
        const size_t semicolon = text.find(';', at);
        if (semicolon == text.npos || semicolon - at > 5) return "a bare &";
      }
      text.remove_prefix(end);
      continue;
    }
    const size_t end = text.find('>');
    if (end == text.npos) return "an open tag";
    const absl::string_view tag = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (absl::StartsWith(tag, "/")) {
      if (open.empty() || open.back() != tag.substr(1)) return absl::StrCat("closed: ", tag);
      open.pop_back();
      continue;
    }
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return absl::StrCat("quotes: ", tag);
    if (absl::StrContains(tag, '<')) return absl::StrCat("a bare < in ", tag);
    if (!absl::EndsWith(tag, "/")) open.emplace_back(tag.substr(0, tag.find(' ')));
  }
  return open.empty() ? "" : absl::StrCat("left open: ", open.back());
}

std::vector<int64_t> ValuesOf(absl::string_view page, absl::string_view attribute) {
  std::vector<int64_t> values;
  const std::vector<std::string> parts = absl::StrSplit(page, absl::StrCat(" ", attribute, "=\""));
  for (size_t i = 1; i < parts.size(); ++i) {
    int64_t value = -1;
    const bool is_number = absl::SimpleAtoi(parts[i].substr(0, parts[i].find('"')), &value);
    values.push_back(is_number ? value : -1);
  }
  return values;
}

}  // namespace mgc
