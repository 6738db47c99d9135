// The dim classes of a model, and what tensor parallelism on each would come to, as a report.

#ifndef MGC_TOOLS_VIEWS_DIMS_H_
#define MGC_TOOLS_VIEWS_DIMS_H_

#include <string>
#include <vector>

#include "passes/search/class_layout.h"

namespace mgc {

// A line of what the model comes to if tp cuts nothing, then one a class: its sizes, bytes of the
// parameters that have it, and, where tp divides it, bytes of parameters on a rank and the
// predicted step if tp cuts this class alone. Below, why such a step is refused where it is.
std::string DimsText(const LayoutCost& uncut, const std::vector<ClassChoice>& classes);

// The same as an object: `uncut`, and a list `classes`.
std::string DimsJson(const LayoutCost& uncut, const std::vector<ClassChoice>& classes);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DIMS_H_
