// Whether two plans say the same, field by field, without either of their file forms: what round
// trips are measured with.

#ifndef MGC_GRAPH_PLAN_DIFF_H_
#define MGC_GRAPH_PLAN_DIFF_H_

#include <string>

#include "graph/plan.h"

namespace mgc {

// True when every field is equal; values and files of the models count by name, not by number.
// Otherwise `difference` receives the first differences, at most ten, one a line:
// `class 1: train: 0F3: frame: 4096, not 8192`.
bool SamePlan(const Plan& a, const Plan& b, std::string* difference);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_DIFF_H_
