// What an instruction is to one rank: its op's use with local types, from which scratch and costs
// follow.
//
//   slot f32[8,16] @m[dp,tp] on dp=2, tp=4      an operand of type f32[4,4]

#ifndef MGC_GRAPH_PLAN_LOCAL_USE_H_
#define MGC_GRAPH_PLAN_LOCAL_USE_H_

#include <vector>

#include "graph/ir/op.h"
#include "graph/plan/plan.h"
#include "graph/types/mesh.h"
#include "graph/types/tensor_type.h"

namespace mgc {

// Operands and results are the tiles of one rank, without names and padding included; a tile that
// is stored in pieces is one flat dim.
class LocalUse {
 public:
  // An instruction that has an op, which outlives this.
  LocalUse(const Segment& segment, const Instr& instr, const Mesh& mesh);
  LocalUse(const LocalUse&) = delete;
  LocalUse& operator=(const LocalUse&) = delete;

  OpUse use() const { return {instr_.attrs, operands_, results_}; }

 private:
  const Instr& instr_;
  std::vector<TensorType> tiles_;
  std::vector<const TensorType*> operands_;
  std::vector<const TensorType*> results_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_LOCAL_USE_H_
