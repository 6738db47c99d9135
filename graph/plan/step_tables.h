// The lists of a plan resolved: names to places, counts to sums. Whoever walks through a plan reads
// these tables and no others, the proof as the runtime and the prediction, so that what is proved
// is what runs.

#ifndef MGC_GRAPH_PLAN_STEP_TABLES_H_
#define MGC_GRAPH_PLAN_STEP_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/instr_collective.h"
#include "graph/plan/plan.h"
#include "graph/plan/plan_refs.h"

namespace mgc {

inline constexpr int kOwnGroup = -1;  // of a collective inside every class

// What a segment's `start` hands over.
struct StepStart {
  const Instr* instr = nullptr;
  bool background = false;  // the segment does not wait for it
  InstrCollective collective;
  int group = kOwnGroup;  // else an index into StepTables::groups
  // Equal exactly for those that may meet: of one group, op, element types, tiles, order of pieces.
  int signature = -1;
};

struct StepSegment {
  const Segment* segment = nullptr;
  std::vector<const Instr*> points;  // kStart and kWait, in order
  std::vector<StepStart> starts;     // by number of the collective
};

// Counts are of one step; what is needed counts from the step's begin, in the class' own order.
struct StepAction {
  const Action* action = nullptr;
  const std::vector<Call>* calls = nullptr;
  int64_t first_collective = 0;  // collectives of the actions before it
  int64_t transfers_needed = 0;  // of the communication list
  // By call, before it begins; empty: no call waits.
  std::vector<int64_t> collectives_needed;
};

// A rank's transfers are done in list order.
struct StepTransfer {
  const Transfer* transfer = nullptr;
  int peer_class = 0;
  int peer_index = 0;          // of the other end, in that class' list
  int64_t actions_needed = 0;  // its `after` list's, and the sending action
  int64_t position = 0;        // collectives of the step that stand before it
};

struct StepClass {
  const PlanClass* plan_class = nullptr;
  const std::vector<Chunk>* chunks = nullptr;
  std::vector<StepAction> actions;
  std::vector<StepTransfer> transfers;
  int64_t num_collectives = 0;
  ProgramIndex index;

  // Places in the lists, -1 when absent.
  int IndexOf(const ActionRef& ref) const { return index.Find(ref); }
  int IndexOf(const TransferRef& ref) const { return index.Find(ref); }
};

// Points into the plan, which must outlive it. The plan has passed graph/plan/plan_check.h.
struct StepTables {
  StepTables(const Plan& plan, bool eval);

  const Plan& plan;
  bool eval;
  std::vector<StepSegment> segments;
  std::vector<std::vector<int>> groups;  // of collectives that join classes: the classes
  std::vector<std::string> group_names;
  std::vector<StepClass> classes;
};

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_STEP_TABLES_H_
