// A plan as one page to look at in a browser: self-contained, no library, nothing fetched. First
// what is where and who sends what to whom, then the predicted step along time, then memory along
// the same time, at last what ranks run.

#ifndef MGC_TOOLS_VIEWS_PAGE_PAGE_H_
#define MGC_TOOLS_VIEWS_PAGE_PAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "tools/views/page/markup.h"

namespace mgc {

// HTML that is XML too, the same for the same plan. Times are PredictStep's; its error where the
// step never ends.
//
// Numbers of the pictures are also there to be read: `data-bytes` of arrows and of cells of memory,
// `data-peak` of boxes, `data-begin` and `data-end` of bars in nanoseconds; these not
// of steps of more than 100,000 actions and exchanges, whose bars have no names.
absl::StatusOr<std::string> PlanPage(const Plan& plan);

// Adds the same, without head and body, to a page.
absl::Status AddPlan(const Plan& plan, Markup* page);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_PAGE_PAGE_H_
