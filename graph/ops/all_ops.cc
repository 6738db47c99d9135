// The one list of ops. An op missing here does not exist.

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "graph/ops/op_families.h"

namespace mgc {
namespace {

std::vector<OpDef> ListOps() {
  std::vector<OpDef> ops;
  for (std::vector<OpDef> family :
       {ElementwiseOps(), ActivationOps(), IdentityOps(), ReduceOps(), TotalOps(), MovementOps(),
        NormOps(), MatmulOps(), PositionOps(), AttentionOps(), RopeOps(), LossOps(), SoftmaxOps(),
        EmbeddingOps(), OptimizerOps(), OptimizerNumberOps(), CollectiveOps()}) {
    for (OpDef& op : family) ops.push_back(std::move(op));
  }
  for (OpDef& op : ops) op.parsed_rule = RuleText(op.rule);
  std::sort(ops.begin(), ops.end(), [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
  return ops;
}

}  // namespace

const std::vector<OpDef>& AllOps() {
  static const std::vector<OpDef>* const ops = new std::vector<OpDef>(ListOps());
  return *ops;
}

}  // namespace mgc
