#include "passes/config/violation.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"

namespace mgc {

std::string ToString(const Violation& violation) {
  std::string text =
      absl::StrCat("error: ", EscapeBytes(violation.message), " [", violation.rule, "]");
  if (!violation.hint.empty()) {
    absl::StrAppend(&text, "; nearest legal: ", EscapeBytes(violation.hint));
  }
  return text;
}

std::string ToString(absl::Span<const Violation> violations) {
  std::string text;
  for (const Violation& violation : violations) absl::StrAppend(&text, ToString(violation), "\n");
  return text;
}

void Append(std::vector<Violation> more, std::vector<Violation>* violations) {
  violations->insert(violations->end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
}

}  // namespace mgc
