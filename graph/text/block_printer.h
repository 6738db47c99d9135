// Text in blocks: `name {`, lines of its own indented by two blanks, `}`.

#ifndef MGC_GRAPH_TEXT_BLOCK_PRINTER_H_
#define MGC_GRAPH_TEXT_BLOCK_PRINTER_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mgc {

class BlockPrinter {
 public:
  // What is passed is put together as by absl::StrCat.
  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&text_, std::string(2 * depth_, ' '), parts...);
    text_ += "\n";
  }
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Line(parts..., " {");
    ++depth_;
  }
  void Close() {
    --depth_;
    Line("}");
  }
  // Text that has its newlines and its indentation.
  void Append(absl::string_view text) { absl::StrAppend(&text_, text); }

  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_BLOCK_PRINTER_H_
