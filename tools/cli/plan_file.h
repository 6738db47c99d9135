// Plans as files: bytes, or text where the name ends in `.mgc`.

#ifndef MGC_TOOLS_CLI_PLAN_FILE_H_
#define MGC_TOOLS_CLI_PLAN_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "graph/plan/plan.h"

namespace mgc {

// The plan at `path`; `-` is stdin, in either form. Errors name the path and what is wrong with the
// file: unreadable, damaged, of another version, or with located errors of its text.
absl::StatusOr<Plan> ReadPlan(const std::string& path);

// Whether the file at `path` can be read and begins as a plan does, in either form.
bool IsPlanFile(const std::string& path);

// What belongs in a file at `path`; `-` takes the bytes.
std::string PlanContent(const Plan& plan, const std::string& path);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_PLAN_FILE_H_
