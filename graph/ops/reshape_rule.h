// How a reshape's dims correspond: the factors that dims before and after are made of.

#ifndef MGC_GRAPH_OPS_RESHAPE_RULE_H_
#define MGC_GRAPH_OPS_RESHAPE_RULE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/ir/op.h"

namespace mgc {

// Refuses sizes whose product differs from the operand's (reshape_c2), numbers of names other than
// of sizes, unless there are none (reshape_c1), sizes below 1 (reshape_c3) and padded dims that do
// not stay alone and in one piece (reshape_c4).
absl::Status CheckReshape(const OpUse& use);

absl::Status InferReshape(const OpUse& use, std::vector<TensorType>* results);

// The rule in which dims before and after share factors wherever one divides the other, from the
// left: [4,6] -> [8,3] is `f0 (f1 f2) -> (f0 f1) f2` with sizes 4, 2, 3. Dims between two points
// where the products agree, but which share no such factors ([6,2] -> [4,3]), stay whole.
std::string ReshapeRule(const OpUse& use);

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_RESHAPE_RULE_H_
