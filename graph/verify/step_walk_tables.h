// The lists of a plan in the form in which graph/verify walks through them: names resolved to
// places, counts to sums.

#ifndef MGC_GRAPH_VERIFY_STEP_WALK_TABLES_H_
#define MGC_GRAPH_VERIFY_STEP_WALK_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/plan.h"

namespace mgc {

inline bool IsSend(TransferKind kind) {
  return kind == TransferKind::kSendForward || kind == TransferKind::kSendBackward;
}
inline bool IsForward(TransferKind kind) {
  return kind == TransferKind::kSendForward || kind == TransferKind::kRecvForward;
}

inline constexpr int kOwnGroup = -1;  // of a collective inside every class

// What a segment's `start` hands over.
struct WalkStart {
  const Instr* instr = nullptr;
  int group = kOwnGroup;  // else an index into WalkTables::groups
  // Of one that joins classes; equal exactly for those that may meet: of one group, op, types,
  // sizes.
  int signature = -1;
};

struct WalkSegment {
  const Segment* segment = nullptr;
  std::vector<const Instr*> points;  // kStart and kWait, in order
  std::vector<WalkStart> starts;     // by number of the collective
};

// Counts are of one step; what is needed counts from the step's begin, in the class' own order.
struct WalkAction {
  const Action* action = nullptr;
  const std::vector<Call>* calls = nullptr;
  int64_t first_collective = 0;    // collectives of the actions before it
  int64_t transfers_needed = 0;    // of the communication list
  int64_t collectives_needed = 0;  // waits_for_reductions
};

struct WalkTransfer {
  const Transfer* transfer = nullptr;
  int peer_class = 0;
  int peer_index = 0;          // of the other end, in that class' list
  int64_t actions_needed = 0;  // its `after` list's, and the sending action
  int64_t position = 0;        // collectives of the step that stand before it
};

struct WalkClass {
  const PlanClass* plan_class = nullptr;
  const std::vector<Chunk>* chunks = nullptr;
  std::vector<WalkAction> actions;
  std::vector<WalkTransfer> transfers;
  int64_t num_collectives = 0;

  // Places in the lists, -1 when absent.
  int IndexOf(const ActionRef& ref) const;
  int IndexOf(const TransferRef& ref) const;

 private:
  friend class WalkTablesBuilder;
  absl::flat_hash_map<uint64_t, int> action_index_;
  absl::flat_hash_map<uint64_t, int> transfer_index_;
};

// Points into the plan, which must outlive it. The plan has passed graph/plan_check.h.
struct WalkTables {
  WalkTables(const Plan& plan, bool eval);

  const Plan& plan;
  bool eval;
  std::vector<WalkSegment> segments;
  std::vector<std::vector<int>> groups;  // of collectives that join classes: the classes
  std::vector<std::string> group_names;
  std::vector<WalkClass> classes;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_STEP_WALK_TABLES_H_
