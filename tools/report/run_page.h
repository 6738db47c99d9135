// A run as one page to look at in a browser: self-contained, no library, nothing fetched. First how
// it went in numbers, then its curves along the steps, then the last step of a timeline, then the
// plan as its own page has it (tools/views/page/page.h).

#ifndef MGC_TOOLS_REPORT_RUN_PAGE_H_
#define MGC_TOOLS_REPORT_RUN_PAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"
#include "tools/report/run_log.h"

namespace mgc {

struct RunParts {
  std::string name;  // of the run, as the page's title
  const RunLog& log;
  const Plan* plan = nullptr;    // none: the page ends before it
  std::vector<LogRow> timeline;  // may be empty
};

// HTML that is XML too, the same for the same run. Errors of predicting the plan's step.
//
// Numbers are also there to be read: `data-value` of the cells of `#facts`, which has a row for
// each `data-fact`; those of curves (curves.h); `data-us` of a timeline's bars, where they begin.
absl::StatusOr<std::string> RunPage(const RunParts& run);

}  // namespace mgc

#endif  // MGC_TOOLS_REPORT_RUN_PAGE_H_
