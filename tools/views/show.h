// A plan at a glance: what was asked for, how the model lies on the ranks, what it costs.

#ifndef MGC_TOOLS_VIEWS_SHOW_H_
#define MGC_TOOLS_VIEWS_SHOW_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "tools/views/timing.h"

namespace mgc {

// Which dims of a parameter are cut, and over which axes: `mlp over tp`; else `replicated`.
std::string CutOf(const ParamEntry& entry, const Mesh& mesh);

// Share of a step that the pipeline's ends are idle at equal costs: (pp - 1) / (vp M), relative to
// the busy time (Narayanan et al. 2021, section 2.2).
double IdealBubble(const Plan& plan);

// Logical elements of all parameters, each counted once.
int64_t ParameterCount(const Plan& plan);

// Stages, cuts and classes that are alike are one row, which names them; with `all` each has its
// own.
std::string ShowText(const Plan& plan, bool all = false);

// {"name", "options", "mesh", "batch", "stages", "parameters", "memory", ...}; bytes are raw.
std::string ShowJson(const Plan& plan);
// And how long its compilation took, under "timing".
std::string ShowJson(const Plan& plan, const std::vector<PassTime>& times);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_SHOW_H_
