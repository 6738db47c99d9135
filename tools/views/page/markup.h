// Writes HTML, with SVG in it, that is XML as well: what is opened is closed, what is quoted is
// escaped, so that every parser of either reads the same.

#ifndef MGC_TOOLS_VIEWS_PAGE_MARKUP_H_
#define MGC_TOOLS_VIEWS_PAGE_MARKUP_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

using MarkupAttrs = std::vector<std::pair<absl::string_view, std::string>>;

// `text` with `<`, `>`, `&` and quotes as entities; bytes that are no printable ASCII, nor
// newlines, as `?`.
std::string EscapeMarkup(absl::string_view text);

class Markup {
 public:
  // Each Open has its Close.
  Markup& Open(absl::string_view tag, const MarkupAttrs& attrs = {});
  Markup& Close();
  Markup& Text(absl::string_view text);
  // An element with nothing but text inside.
  Markup& Element(absl::string_view tag, const MarkupAttrs& attrs, absl::string_view text);
  // One that HTML knows as void: `meta`, `input`.
  Markup& Void(absl::string_view tag, const MarkupAttrs& attrs);
  // A style sheet or a script of ours, without `<` and `&`.
  Markup& Verbatim(absl::string_view tag, absl::string_view content);
  Markup& NewLine();

  // As a page; or the elements alone, as an SVG file has them.
  std::string Finish() &&;
  std::string Elements() &&;

 private:
  void Begin(absl::string_view tag, const MarkupAttrs& attrs);

  std::string text_;
  std::vector<std::string> open_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_MARKUP_H_
