#include "tools/cli/plan_file.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "tools/cli/output.h"

namespace mgc {
namespace {

// What plan files begin with (graph/plan/proto/plan_wire.h).
constexpr char kPlanMagic[] = "MGCPLAN\n";

bool IsText(absl::string_view path) { return absl::EndsWith(path, ".mgc"); }

}  // namespace

bool IsPlanFile(const std::string& path) {
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return false;
  return absl::StartsWith(*content, kPlanMagic) || absl::StartsWith(*content, "plan ");
}

absl::StatusOr<Plan> ReadPlan(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::string content, ReadInput(path));
  const bool from_stdin = path == "-";
  const std::string name = from_stdin ? "stdin" : path;
  const bool bytes = absl::StartsWith(content, kPlanMagic);
  if (IsText(path) || (from_stdin && !bytes)) return ParsePlan(content, name);
  return DeserializePlan(content, name);
}

std::string PlanContent(const Plan& plan, const std::string& path) {
  return IsText(path) ? PrintPlan(plan) : SerializePlan(plan);
}

}  // namespace mgc
