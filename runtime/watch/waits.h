// Who waits for whom, in words: from what ranks and processes publish, and the plan.

#ifndef MGC_RUNTIME_WATCH_WAITS_H_
#define MGC_RUNTIME_WATCH_WAITS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
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
  // What they point to must outlive it. The plans have passed graph/plan/plan_check.h. Ranks run
  // steps of `plan`, of it with fewer micro-batches (graph/plan/fewer_micro_batches.h), or of
  // `others` on the same mesh, which are numbered behind it.
  Waits(const Plan& plan, const Board& board, std::vector<const Plan*> others = {})
      : plan_(plan), board_(board), others_(std::move(others)) {}

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
  // A rank as it was at one moment: what has been checked of it stays so, whoever writes the board.
  struct Seen {
    int64_t rank = -1;
    int rank_class = 0;
    RankProgress at;
    const StepTables* tables = nullptr;
    bool is_sane = false;   // the places are in the plan
    bool has_item = false;  // it stands at an item of communication, and that is in the plan

    const StepClass& program() const { return tables->classes[static_cast<size_t>(rank_class)]; }
  };
  class Chains;
  // The steps of a plan and a number of micro-batches. `plan` outlives it.
  struct Tables {
    explicit Tables(const Plan& plan) : train(plan, false), eval(plan, true) {}
    explicit Tables(Plan&& made)
        : own(std::make_unique<const Plan>(std::move(made))),
          train(*own, false),
          eval(*own, true) {}

    std::unique_ptr<const Plan> own;
    StepTables train;
    StepTables eval;
  };

  const Tables& TablesOf(int32_t plan, int64_t micro_batches) const;
  Seen Look(int64_t rank) const;
  static bool HasInstr(const Seen& seen);
  static bool HasItem(const Seen& seen);
  std::string PlaceOf(const Seen& seen) const;
  std::string Doing(const Seen& seen, int64_t now_ns) const;
  std::string Doing(int64_t rank, int64_t now_ns) const { return Doing(Look(rank), now_ns); }
  // With whom a rank is at an item that it has.
  std::vector<int64_t> PartnersOf(const Seen& seen) const;
  static bool StandAtOne(const Seen& seen, const Seen& partner);
  // Whom a waiting rank waits for; -1 when nobody is missing.
  int64_t BlockerOf(const Seen& seen) const;
  Culprit FindSilent(int64_t now_ns, int64_t limit_ns) const;
  Culprit FindInStep(int64_t now_ns, int64_t floor_ns) const;
  int64_t SinceOutside(int process, int64_t now_ns) const;
  Culprit FindBetweenSteps(int64_t now_ns, int64_t limit_ns) const;

  const Plan& plan_;
  const Board& board_;
  const std::vector<const Plan*> others_;
  mutable std::mutex making_;
  // By plan and micro-batches, those that have been seen.
  mutable std::map<std::pair<int32_t, int64_t>, Tables> tables_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WATCH_WAITS_H_
