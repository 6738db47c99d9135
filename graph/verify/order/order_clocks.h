// What must be over before what, by explicit waits alone: vector clocks along a walk.
//
// A class' computation is cut into pieces, where actions begin and end and where collectives that
// join classes are started and waited for. A clock counts, by class, the pieces that are over. A
// transfer has no place in a class' clock; what directly waits for it is kept instead.

#ifndef MGC_GRAPH_VERIFY_ORDER_ORDER_CLOCKS_H_
#define MGC_GRAPH_VERIFY_ORDER_ORDER_CLOCKS_H_

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "graph/plan/step_tables.h"
#include "graph/plan/step_walk.h"

namespace mgc {

// An event of a class' lists, over all steps: step * size of the list + place in it.
struct ClassEvent {
  bool transfer = false;
  int64_t index = 0;
};

// A moment at which memory begins to be used: an action's begin or a transfer.
struct ClockMoment {
  const int32_t* clock = nullptr;  // one count a class
  int class_index = -1;            // of an action's begin
  int32_t piece = 0;
  int64_t transfer = -1;  // number of the transfer
};

class OrderClocks {
 public:
  // Whether the clocks of a plan take a sensible amount of memory.
  static bool Fits(const StepTables& tables, int steps);

  OrderClocks(const StepTables& tables, int steps);

  // Along a walk. What is returned holds until the next call of any of them.
  ClockMoment BeginAction(int c, int step, int index);
  void EndAction(int c, int step, int index);
  ClockMoment PassTransfer(int from, int64_t from_index, int to, int64_t to_index);
  void Start(const InstrSite& site);
  void Collect(absl::Span<const InstrSite> sites);
  void Wait(const InstrSite& site);
  // Of the background collectives that the class has started all but the last `running` are done.
  void Await(int c, int running);

  // Whether an event of class `c` is over before `moment`, whatever the times.
  bool IsOver(int c, const ClassEvent& event, const ClockMoment& moment);
  // Whether answers have run out: from then on IsOver is false where it would take long.
  bool IsExhausted() const { return budget_ <= 0; }

 private:
  static constexpr size_t kMostCounts = size_t{1} << 27;
  using Clock = std::vector<int32_t>;
  struct Successor {
    int class_index;  // of an action, by its first piece; -1: of transfer `number`
    int64_t number;
    int32_t next;  // in successors_, -1: none
  };
  // A collective that joins classes, started by one of them.
  struct Joint {
    const Action* action;
    const Call* call;
    int number;
    int64_t start;  // in the background: their starts before it, joint or not; else -1
    bool done;
    Clock clock;
  };

  int64_t NumberOf(int c, int64_t index) const;
  void AddSuccessor(int64_t transfer, int class_index, int64_t number);
  void EndPiece(int c);
  void Join(const int32_t* from, int32_t* to) const;
  const StepStart& StartOf(const InstrSite& site) const;
  bool IsJoint(const InstrSite& site) const { return StartOf(site).group != kOwnGroup; }
  int32_t* EndClock(int c, int64_t index) {
    return &ends_[static_cast<size_t>(c)][static_cast<size_t>(index) * num_classes_];
  }
  int32_t* TransferClock(int64_t number) {
    return &transfer_clocks_[static_cast<size_t>(number) * num_classes_];
  }
  bool TransferIsOver(int64_t number, const ClockMoment& moment);

  const StepTables& tables_;
  const size_t num_classes_;
  std::vector<Clock> now_;                              // by class
  std::vector<std::vector<int32_t>> ends_;              // by class: clocks at the ends of actions
  std::vector<std::vector<int64_t>> transfer_numbers_;  // by class and place: within a step
  int64_t transfers_per_step_ = 0;
  std::vector<int32_t> transfer_clocks_;
  std::vector<int32_t> first_successor_;  // by transfer
  std::vector<Successor> successors_;
  std::vector<bool> transfer_done_;
  std::vector<int32_t> visited_;  // by transfer: the search that came to it last
  int32_t visit_ = 0;
  int64_t budget_ = int64_t{1} << 28;      // successors that searches may look at
  std::vector<int64_t> started_;           // in the background, by class
  std::vector<std::deque<Joint>> joints_;  // by class, in order of start; until waited for
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_ORDER_ORDER_CLOCKS_H_
