#include "graph/verify/shrink/keep_issued.h"

#include <algorithm>
#include <vector>

#include "graph/plan/instr_collective.h"

namespace mgc {
namespace {

void KeepAnchors(const Plan& plan, StaysIn stays, PlanClass* rank_class) {
  for (const bool eval : {false, true}) {
    Program& program = eval ? rank_class->eval : rank_class->train;
    for (Transfer& transfer : program.transfers) {
      int open = transfer.issued;
      int now = 0;
      for (const Call& call : CallsOf(plan, *rank_class, eval, transfer.anchor)) {
        const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
        const int issued = std::min(open, segment.num_collectives);
        open -= issued;
        for (int start = 0; start < issued; ++start) now += stays(call, start) ? 1 : 0;
      }
      transfer.issued = now;
    }
  }
}

// Goes through the calls of a class with what they start in the background, by whether it stays.
class RunningKeeper {
 public:
  RunningKeeper(const Plan& plan, StaysIn stays) : plan_(plan), stays_(stays) {}

  // All copies are asked for before the first forward. What other actions start in between has been
  // waited for when they end, so that a list goes on where `prepare` ends.
  void Run(std::vector<Chunk>* chunks, std::vector<Call>* update) {
    for (Chunk& chunk : *chunks) Pass(&chunk.prepare);
    const std::vector<bool> prepared = started_;
    for (Chunk& chunk : *chunks) {
      for (std::vector<Call>* calls : {&chunk.forward, &chunk.backward, &chunk.last_backward}) {
        started_ = prepared;
        Pass(calls);
      }
    }
    started_ = prepared;
    for (Chunk& chunk : *chunks) {
      for (const Call& call : chunk.last_backward) AddStarts(call);
    }
    Pass(update);
  }

 private:
  void Pass(std::vector<Call>* calls) {
    for (Call& call : *calls) {
      if (call.running > 0) {
        const size_t running = std::min(static_cast<size_t>(call.running), started_.size());
        call.running = static_cast<int>(
            std::count(started_.end() - static_cast<int64_t>(running), started_.end(), true));
      }
      AddStarts(call);
    }
  }

  void AddStarts(const Call& call) {
    const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
    const std::vector<bool> waited_for = WaitedFor(segment);
    int start = 0;
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kStart) continue;
      const bool background = !waited_for[static_cast<size_t>(instr.collective)];
      if (background) started_.push_back(stays_(call, start));
      ++start;
    }
  }

  const Plan& plan_;
  const StaysIn stays_;
  std::vector<bool> started_;  // in the background, in order
};

}  // namespace

void KeepIssued(const Plan& plan, StaysIn stays, PlanClass* rank_class) {
  KeepAnchors(plan, stays, rank_class);
  RunningKeeper(plan, stays).Run(&rank_class->chunks, &rank_class->update);
  RunningKeeper(plan, stays).Run(&rank_class->eval_chunks, &rank_class->eval_update);
}

}  // namespace mgc
