#include "graph/ops/all_ops.h"

#include <utility>

#include "graph/ops/op_families.h"

namespace mgc {

std::vector<OpDef> ListOps() {
  std::vector<OpDef> ops;
  for (std::vector<OpDef> family :
       {ElementwiseOps(), ActivationOps(), IdentityOps(), ReduceOps(), MovementOps(), NormOps(),
        MatmulOps(), AttentionOps(), RopeOps(), LossOps(), SoftmaxOps(), EmbeddingOps(),
        OptimizerOps(), CollectiveOps()}) {
    for (OpDef& op : family) ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace mgc
