// One walk through the lists of a plan (graph/plan/step_walk.h), with the state in which it ends.

#ifndef MGC_GRAPH_PLAN_STEP_WALKER_H_
#define MGC_GRAPH_PLAN_STEP_WALKER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "graph/plan/step_tables.h"
#include "graph/plan/step_walk.h"

namespace mgc {

// A queue of a class.
struct WalkQueue {
  int class_index = 0;
  bool communication = false;

  friend bool operator==(const WalkQueue& a, const WalkQueue& b) {
    return a.class_index == b.class_index && a.communication == b.communication;
  }
};

// What a queue that has stopped waits for: that `queue` comes to `item`, or is past it.
struct WalkNeed {
  WalkQueue queue;
  std::string item;
};

class StepWalker {
 public:
  // All of them must outlive the walker.
  StepWalker(const StepTables& tables, int steps, StepVisitor* visitor);

  // True when all lists have been run to their end.
  bool Run();

  // After Run.
  bool IsAtEnd(const WalkQueue& queue) const;
  std::string Head(const WalkQueue& queue) const;  // of a queue that is not at its end
  std::vector<WalkNeed> Needs(const WalkQueue& queue) const;

 private:
  // Counts without `_of_step` run through all steps.
  struct ClassState {
    // The compute queue: the action of `step`, call and instruction that come next.
    int step = 0;
    size_t action = 0;
    size_t call = 0;
    size_t instr = 0;
    bool inside = false;     // past what the action waits for
    bool in_call = false;    // past what the call waits for
    int64_t call_first = 0;  // collectives of the step before the call
    int64_t started = 0;
    int64_t actions_done = 0;
    // The communication queue: which entries of `comm_step` are done, and where the next
    // collective is.
    int comm_step = 0;
    int64_t collectives_of_step = 0;
    size_t transfers_of_step = 0;
    size_t at_action = 0;
    size_t at_call = 0;
    size_t at_start = 0;
  };

  const StepClass& ClassOf(int c) const { return tables_.classes[static_cast<size_t>(c)]; }
  const StepSegment& SegmentOf(const Call& call) const {
    return tables_.segments[static_cast<size_t>(call.segment)];
  }
  void Wake(int c);
  void RunAwake();
  bool AllAtEnd() const;
  bool ComputeAtEnd(int c) const;
  bool CommAtEnd(int c) const;
  bool CollectivesDone(int c, int64_t of_step) const;  // of the step that the class computes
  bool TransfersDone(int c, int64_t of_step) const;
  bool Compute(int c);
  bool ComputeAction(int c);
  bool BeginCall(int c, const StepAction& action, const Call& call);
  int64_t NeededByCall(int c) const;
  bool RunInstr(int c, const StepAction& action, const Call& call, const Instr& instr);
  bool Communicate(int c);
  bool HeadIsTransfer(int c) const;
  const StepStart* HeadStart(int c) const;  // null at a transfer and at the end
  bool HasStarted(int c) const;             // what HeadStart names
  bool TransferCanRun(int c, const StepTransfer& transfer) const;
  bool RunTransfer(int c);
  bool RunCollective(int c);
  InstrSite HeadSite(int c) const;
  void FindNextStart(int c);
  void PassCollective(int c);
  void PassStepEnd(int c);
  void AddTransferNeeds(int c, std::vector<WalkNeed>* needs) const;
  void AddCollectiveNeeds(int c, std::vector<WalkNeed>* needs) const;
  std::string NameOfCollective(int c, int64_t of_step) const;
  std::string NameOfSite(const InstrSite& site) const;

  const StepTables& tables_;
  const int steps_;
  StepVisitor& visitor_;
  const bool wants_instrs_;
  std::vector<ClassState> classes_;
  std::deque<int> awake_;
  std::vector<bool> is_awake_;
  std::vector<InstrSite> sites_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_STEP_WALKER_H_
