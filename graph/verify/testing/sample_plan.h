// For tests: a plan of two stages in which everything happens once that a proof looks at, small
// enough to be changed line by line.

#ifndef MGC_GRAPH_VERIFY_TESTING_SAMPLE_PLAN_H_
#define MGC_GRAPH_VERIFY_TESTING_SAMPLE_PLAN_H_

#include <string>
#include <utility>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// In the text form. Class 0: embedding and layer 0, with a collective inside forward, a parameter
// and its reduction; class 1: the head. Three micro-batches, 1F1B.
std::string SamplePlanText();

// Each `from` must occur; its first occurrence becomes `to`.
using TextEdits = std::vector<std::pair<std::string, std::string>>;
// The sample, changed. Fails the test and returns an empty plan where it cannot be read.
Plan EditedSample(const TextEdits& edits);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_TESTING_SAMPLE_PLAN_H_
