// What tells two plans apart, from what was asked for down to instructions.

#ifndef MGC_TOOLS_VIEWS_DIFF_H_
#define MGC_TOOLS_VIEWS_DIFF_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

struct ViewDifference {
  std::string what;  // `option --tp`, `stage 3`, `memory of pp 1, peak`, `segment layer.forward`
  std::string left;  // empty: the left plan has none
  std::string right;
};

// Options, sizes, stages, parameters, memory, order of actions, communication and instructions. Of
// a segment the first instruction that differs. Plans that are alike in all of these and yet no
// equal files: the fields of the file that differ (`classes[1].train.transfers[0].body[2].bytes`).
std::vector<ViewDifference> DiffPlans(const Plan& left, const Plan& right);

// Three lines a difference: what, `< left`, `> right`.
std::string DiffText(const std::vector<ViewDifference>& differences);

// {"same", "differences": [{"what", "left", "right"}]}
std::string DiffJson(const std::vector<ViewDifference>& differences);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DIFF_H_
