// What tells two plans apart, field by field of their wire form (graph/plan/proto/plan.proto).

#ifndef MGC_GRAPH_PLAN_PROTO_PLAN_DIFFERENCE_H_
#define MGC_GRAPH_PLAN_PROTO_PLAN_DIFFERENCE_H_

#include <string>
#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// One field of the wire form that two plans do not share.
struct FieldDifference {
  std::string field;  // `classes[1].memory.peak`
  std::string left;   // its value, in the text form of protocol buffers; empty: there is none
  std::string right;
};

// All of them, in the order of the fields; none when the plans' files say the same. Who has proved
// a plan is no part of it.
std::vector<FieldDifference> FieldDifferences(const Plan& left, const Plan& right);

// The first ten, one a line: `classes[1].memory.peak: 16384, not 5`. Empty when there is none.
std::string PlanDifference(const Plan& left, const Plan& right);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PROTO_PLAN_DIFFERENCE_H_
