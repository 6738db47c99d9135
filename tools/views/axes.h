// What every axis of the mesh cuts and what it leaves whole, each with the row, rule or pin that
// decided.

#ifndef MGC_TOOLS_VIEWS_AXES_H_
#define MGC_TOOLS_VIEWS_AXES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/base/json_writer.h"
#include "graph/plan/plan.h"
#include "graph/types/mesh.h"
#include "passes/graph/shard/axis_uses.h"

namespace mgc {

using AxisUses = absl::StatusOr<std::vector<AxisUse>>;

// The account of a plan, derived anew from what it holds: its model, its mesh, its flags and the
// rows of its strategy. None for a plan that holds no flags. FailedPrecondition where a parameter
// or its states lie otherwise than that comes to: the plan was edited, or made by another version.
AxisUses AxisUsesOf(const Plan& plan);

// One paragraph an axis, or why there is none; nothing where there is nothing to tell. Unless
// `all`, kinds of values to which an axis does the same for the same reason are one line, with the
// names of the first.
std::string AxesText(const Mesh& mesh, size_t stages, const AxisUses& uses, bool all = false);

// "axes": [{"axis", "ranks", "uses": [{"effect", "values", "dim", "by", "count", "names",
// "more"}]}], empty where AxesText says why.
void WriteAxes(const Mesh& mesh, const AxisUses& uses, JsonWriter* json);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_AXES_H_
