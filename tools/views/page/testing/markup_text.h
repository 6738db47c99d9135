// Reads markup, for tests of pages.

#ifndef MGC_TOOLS_VIEWS_PAGE_TESTING_MARKUP_TEXT_H_
#define MGC_TOOLS_VIEWS_PAGE_TESTING_MARKUP_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

// Why a text is no XML, as far as a page may go wrong: elements that are not closed in order,
// attributes without quotes, characters that would be markup. Empty: it is.
std::string FlawOf(absl::string_view text);

// The values of an attribute, in order; -1 for one that is no number.
std::vector<int64_t> ValuesOf(absl::string_view page, absl::string_view attribute);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_TESTING_MARKUP_TEXT_H_
