// What a search for a plan has found, as one page to look at in a browser: self-contained, nothing
// fetched. First the plans, then time against memory as a picture, then why others are not the
// answer, at last what was searched.

#ifndef MGC_TOOLS_VIEWS_PAGE_SEARCH_PAGE_H_
#define MGC_TOOLS_VIEWS_PAGE_SEARCH_PAGE_H_

#include <string>

#include "tools/views/found_plans.h"

namespace mgc {

// HTML that is XML too, the same for the same answer.
//
// Numbers are also there to be read: `data-step-ns` and `data-peak` of the rows of plans (in
// `#ranked` and `#front`) and of the points of the picture (`.front`, `.found`), `data-bytes` of
// the line where a device ends, `data-value` of the counts in `#searched`.
std::string SearchPage(const SearchAnswer& answer);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_SEARCH_PAGE_H_
