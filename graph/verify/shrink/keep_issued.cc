#include "graph/verify/shrink/keep_issued.h"

#include <algorithm>
#include <vector>

namespace mgc {
void KeepIssued(const Plan& plan, absl::FunctionRef<int(const Call& call, int issued)> kept,
                PlanClass* rank_class) {
  for (const bool eval : {false, true}) {
    Program& program = eval ? rank_class->eval : rank_class->train;
    for (Transfer& transfer : program.transfers) {
      int open = transfer.issued;
      int now = 0;
      for (const Call& call : CallsOf(plan, *rank_class, eval, transfer.anchor)) {
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
