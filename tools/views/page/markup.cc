#include "tools/views/page/markup.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {

std::string EscapeMarkup(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped.push_back(c == '\n' || absl::ascii_isprint(static_cast<unsigned char>(c)) ? c
                                                                                          : '?');
    }
  }
  return escaped;
}

void Markup::Begin(absl::string_view tag, const MarkupAttrs& attrs) {
  absl::StrAppend(&text_, "<", tag);
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&text_, " ", name, "=\"", EscapeMarkup(value), "\"");
  }
}

Markup& Markup::Open(absl::string_view tag, const MarkupAttrs& attrs) {
  Begin(tag, attrs);
  text_ += ">";
  open_.emplace_back(tag);
  return *this;
}

Markup& Markup::Close() {
  MGC_CHECK(!open_.empty()) << "an element too many is closed";
  absl::StrAppend(&text_, "</", open_.back(), ">");
  open_.pop_back();
  return *this;
}

Markup& Markup::Text(absl::string_view text) {
  text_ += EscapeMarkup(text);
  return *this;
}

Markup& Markup::Element(absl::string_view tag, const MarkupAttrs& attrs, absl::string_view text) {
  return Open(tag, attrs).Text(text).Close();
}

Markup& Markup::Void(absl::string_view tag, const MarkupAttrs& attrs) {
  Begin(tag, attrs);
  text_ += "/>";
  return *this;
}

Markup& Markup::Verbatim(absl::string_view tag, absl::string_view content) {
  absl::StrAppend(&text_, "<", tag, ">", content, "</", tag, ">");
  return *this;
}

Markup& Markup::NewLine() {
  text_ += "\n";
  return *this;
}

std::string Markup::Finish() && {
  return absl::StrCat("<!DOCTYPE html>\n", std::move(*this).Elements());
}

std::string Markup::Elements() && {
  MGC_CHECK(open_.empty()) << "an element is left open";
  return absl::StrCat(text_, "\n");
}

}  // namespace mgc
