// The families of ops, one function per file of this folder.

#ifndef MGC_GRAPH_OPS_OP_FAMILIES_H_
#define MGC_GRAPH_OPS_OP_FAMILIES_H_

#include <vector>

#include "graph/ir/op.h"

namespace mgc {

std::vector<OpDef> ActivationOps();
std::vector<OpDef> AttentionOps();
std::vector<OpDef> CollectiveOps();
std::vector<OpDef> ElementwiseOps();
std::vector<OpDef> EmbeddingOps();
std::vector<OpDef> IdentityOps();
std::vector<OpDef> LossOps();
std::vector<OpDef> MatmulOps();
std::vector<OpDef> MovementOps();
std::vector<OpDef> NormOps();
std::vector<OpDef> OptimizerNumberOps();
std::vector<OpDef> OptimizerOps();
std::vector<OpDef> PositionOps();
std::vector<OpDef> ReduceOps();
std::vector<OpDef> RopeOps();
std::vector<OpDef> SoftmaxOps();
std::vector<OpDef> TotalOps();

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_OP_FAMILIES_H_
