// The one list of ops. An op missing here does not exist.

#ifndef MGC_GRAPH_OPS_ALL_OPS_H_
#define MGC_GRAPH_OPS_ALL_OPS_H_

#include <vector>

#include "graph/op.h"

namespace mgc {

std::vector<OpDef> ListOps();

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_ALL_OPS_H_
