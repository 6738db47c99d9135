// Who waits for whom, in words: from what ranks and processes publish, and the plan.

#ifndef MGC_RUNTIME_WATCH_WAITS_H_
#define MGC_RUNTIME_WATCH_WAITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/plan/step_tables.h"
#include "runtime/watch/board.h"

namespace mgc {

// A rank, or a process between steps, that others wait for.
struct Culprit {
  int64_t rank = -1;
  int process = -1;
  std::string doing;           // `has been computing 1F5 layers.3.mlp.up (model.cc:42) for 64.0 s`
  std::vector<int64_t> waits;  // the ranks that wait for it, through others too
};

class Waits {
 public:
  // What they point to must outlive it. `plan` has passed graph/plan/plan_check.h.
  Waits(const Plan& plan, const Board& board)
      : plan_(plan), board_(board), train_(plan, false), eval_(plan, true) {}

  // What a rank is at: `computes 1F5 ...`, `waits in 1RECV_F2 for rank 0`, `is between steps`.
  std::string StateOf(int64_t rank, int64_t now_ns) const;
  // One line a rank, and the steps they are in.
  std::string Table(int64_t now_ns) const;
  // Who keeps the run from going on; without a rank where nobody does. What counts is progress: a
  // rank is late when it has computed one instruction for longer than `floor_ns` and five times the
  // longest that its action has ever taken, or when a chain of waits ends with it and nothing
  // moves; a process when nothing has been heard of it, or when others wait for it between steps.
  Culprit FindCulprit(int64_t now_ns, int64_t floor_ns) const;
  // `rank 2 (pid 71, host) has been computing ... for 64.0 s, usually 0.1 s; ranks 0, 1, 3 wait for
  // it`.
  std::string Sentence(const Culprit& culprit) const;
  // `rank 2 (pid 71, host)`; of a process `process 1 (pid 71, host), ranks 2-3`.
  std::string NameOf(int64_t rank) const;
  std::string NameOfProcess(int process) const;

 private:
  const StepTables& TablesOf(const RankProgress& rank) const {
    return rank.eval.get() ? eval_ : train_;
  }
  int ClassOf(int64_t rank) const;
  bool IsSane(int64_t rank) const;
  std::string PlaceOf(int64_t rank) const;
  std::string Doing(int64_t rank, int64_t now_ns) const;
  std::vector<int64_t> MembersOf(int64_t rank, const CommItem& item) const;
  bool StandsAt(int64_t member, int64_t rank, const CommItem& item) const;
  // Whom a waiting rank waits for; -1 when nobody is missing.
  int64_t BlockerOf(int64_t rank) const;
  int64_t EndOfChain(int64_t rank) const;
  Culprit FindSilent(int64_t now_ns, int64_t limit_ns) const;
  Culprit FindInStep(int64_t now_ns, int64_t floor_ns) const;
  bool IsStuck(int64_t rank, int64_t now_ns, int64_t limit_ns) const;
  int64_t SinceOutside(int process, int64_t now_ns) const;
  Culprit FindBetweenSteps(int64_t now_ns, int64_t limit_ns) const;

  const Plan& plan_;
  const Board& board_;
  const StepTables train_;
  const StepTables eval_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WATCH_WAITS_H_
