// A plan in one line.

#ifndef MGC_TOOLS_VIEWS_SUMMARY_H_
#define MGC_TOOLS_VIEWS_SUMMARY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// `tiny.plan: 0.26 M parameters on 8 ranks (tp 2, dp 2, pp 2), step 1.2 ms predicted on
// cpu-threads, peak 3.1 MiB a rank`. Peak is what the rank that needs most needs, workspaces apart.
// With `limited`, for a plan that was held against its machine's memory: `fits: peak 61.2 GiB of
// 80.0 GiB a rank`. `file` is where the plan is.
std::string SummaryText(const Plan& plan, absl::string_view file, bool limited);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_SUMMARY_H_
