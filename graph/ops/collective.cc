// Ops that move data between ranks, or change how a value is laid out without moving it.
//
// Their meaning is a change of sharding: operand and result have one logical type, and the axes and
// dims concerned are read off the two shardings (graph/ir/collective.h). They exist in local graphs
// only. Reference evaluation of all ranks at once is in graph/eval/eval.h.

#include "graph/ops/op_families.h"

namespace mgc {
namespace {

struct EvalIdentity {
  template <class M>
  static void Run(EvalContext<M>& c) {
    c.out(0) = c.in(0);
  }
};

OpDef Collective(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.operands = {"x"};
  op.results = {"out"};
  op.attrs = {{"label", AttrKind::kText, /*required=*/false},
              {"group", AttrKind::kText, /*required=*/false},  // `embedding`: first and last stage
              {"classes", AttrKind::kInts, /*required=*/false}};  // of a pipeline, in a plan
  op.any_dtype = true;
  op.rule = "... -> ...";
  op.linearity = Linearity::kJoint;
  op.flops_per_point = 0;
  op.eval = EvalWith<EvalIdentity>();  // on one rank nothing moves
  op.collective = true;
  op.no_grad = "made by partition, after differentiation";
  op.cases = {{"f32[2,3]"}};
  return op;
}

// The only one whose result is as long as its operand, element by element: the pieces of the others
// move, so that a rank would overwrite what its peers have yet to read.
OpDef AllReduce() {
  OpDef op =
      Collective("all_reduce", "Pays a sum or maximum owed over some axes on all their ranks.");
  op.in_place = {{0, 0}};
  return op;
}

}  // namespace

std::vector<OpDef> CollectiveOps() {
  return {
      AllReduce(),
      Collective("all_gather", "Makes a dim, or the flat tile, whole over some axes."),
      Collective("reduce_scatter", "Pays an owed sum and leaves each rank one piece of a dim."),
      Collective("all_to_all", "Moves some axes from one dim to another."),
      Collective("shard_slice", "Keeps this rank's piece of a dim; moves nothing."),
      Collective("lift",
                 "Makes a whole value a sum owed over axes: rank 0 of them keeps it, the "
                 "others hold zero; moves nothing."),
  };
}

}  // namespace mgc
