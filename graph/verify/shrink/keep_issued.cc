#include "graph/verify/shrink/keep_issued.h"

#include <algorithm>
#include <vector>

namespace mgc {
namespace {

const std::vector<Call>& CallsOf(const PlanClass& c, const ActionRef& ref, bool eval) {
  if (ref.kind == ActionKind::kUpdate) return eval ? c.eval_update : c.update;
  const Chunk& chunk = (eval ? c.eval_chunks : c.chunks)[static_cast<size_t>(ref.chunk)];
  if (ref.kind == ActionKind::kForward) return chunk.forward;
  return ref.kind == ActionKind::kBackward ? chunk.backward : chunk.reduce;
}

}  // namespace

void KeepIssued(const Plan& plan, absl::FunctionRef<int(const Call& call, int issued)> kept,
                PlanClass* rank_class) {
  for (const bool eval : {false, true}) {
    Program& program = eval ? rank_class->eval : rank_class->train;
    for (Transfer& transfer : program.transfers) {
      int open = transfer.issued;
      int now = 0;
      for (const Call& call : CallsOf(*rank_class, transfer.anchor, eval)) {
        const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
        const int issued = std::min(open, segment.num_collectives);
        open -= issued;
        now += kept(call, issued);
      }
      transfer.issued = now;
    }
  }
}

}  // namespace mgc
