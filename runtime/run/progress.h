// What a rank is at, published while it runs: for watchdogs and for people who ask.
//
// Written by the rank's process only, read by any thread, or process where the memory is shared.
// Fields are read one by one, so that a reader may see a state between two instructions; all it
// makes of it is a sentence. Who reads a field twice may read two values: whoever checks before it
// uses takes a copy first. Times are nanoseconds of this host's monotonic clock. All of it is of
// what is issued: a device may do it later (runtime/run/device.h).

#ifndef MGC_RUNTIME_RUN_PROGRESS_H_
#define MGC_RUNTIME_RUN_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "runtime/load/load_plan.h"

namespace mgc {

enum class RankActivity : int32_t {
  kOutside,    // no step runs
  kComputing,  // an instruction
  kReady,      // could go on, and has no worker
  kWaiting,    // for communication
  kFinished,   // its computation of this step
  kHeld,       // before its update, until a checkpoint is written
};

// Two lines of the cache, so that on a board, which begins at one, ranks that write with every
// instruction do not disturb each other.
struct RankProgress {
  template <typename T>
  class Field {
   public:
    Field() = default;
    Field(const Field& other) : Field() { *this = other; }
    Field& operator=(const Field& other) {
      set(other.get());
      return *this;
    }
    T get() const { return static_cast<T>(value_.load(std::memory_order_relaxed)); }
    void set(T value) { value_.store(value, std::memory_order_relaxed); }

   private:
    // Any byte may be where a board is a file of anything; a bool has two values only.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    std::atomic<Stored> value_{};
    static_assert(std::atomic<Stored>::is_always_lock_free, "fields are shared by processes");
  };

  Field<RankActivity> activity;
  Field<int64_t> since_ns;       // of the activity
  Field<int64_t> steps;          // begun, evaluations too
  Field<int64_t> micro_batches;  // of the step, the plan's or fewer
  Field<bool> eval;
  // The compute queue: where it stands.
  Field<int32_t> action, call, instr;
  Field<bool> inside;       // the action's calls have begun
  Field<int64_t> usual_ns;  // the longest that this action has taken in earlier steps; 0: unknown
  // The communication queue: the item it stands at, as CommItem has it, and how many before.
  Field<int32_t> transfer, item_action, item_call, exchange;
  Field<int64_t> items_done;
  Field<bool> at_end;            // of the queue
  Field<bool> in_flight;         // the item has begun here
  Field<int64_t> item_since_ns;  // since when a worker runs it for this rank; 0: none does
  // Of a process' first rank: when communication with other processes last moved.
  Field<int64_t> moved_ns;
  // Time in instructions in the last whole step.
  Field<int64_t> busy_ns;
  Field<int32_t> plan;  // whose step it is: LoadedPlan::number
  char rest_of_line[4] = {};
};
static_assert(sizeof(RankProgress) == 128, "two lines");

// The item that a rank's communication queue stands at; not at_end.
inline CommItem ItemOf(const RankProgress& progress) {
  CommItem item;
  item.transfer = progress.transfer.get();
  item.action = progress.item_action.get();
  item.call = progress.item_call.get();
  item.exchange = progress.exchange.get();
  return item;
}

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_PROGRESS_H_
