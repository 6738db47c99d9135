// What ran when: actions, instructions, collectives and transfers of every rank, recorded into
// buffers of a fixed size while steps run, and named afterwards.

#ifndef MGC_RUNTIME_RUN_TRACE_H_
#define MGC_RUNTIME_RUN_TRACE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/load/load_plan.h"

namespace mgc {

enum class TraceKind : uint8_t { kAction, kInstr, kCollective, kTransfer };

// An entry as recorded: places in the program instead of names.
struct TraceRecord {
  TraceKind kind = TraceKind::kAction;
  bool eval = false;
  int action = -1;
  int call = -1;
  int at = -1;  // instruction, exchange, or transfer
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// A named entry. Times are nanoseconds of one monotonic clock.
struct TraceEvent {
  int rank = 0;
  TraceKind kind = TraceKind::kAction;  // actions and instructions are of the compute queue
  std::string name;  // `3F2`; `layer.forward[7] matmul`; `all-reduce tp`; `3RECV_F2`
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  const Segment* segment = nullptr;  // of an instruction, which stands there at `instr`
  int instr = -1;
  int64_t micro_batch = -1;                  // -1: of none
  int layer = kNoLayer;                      // of an instruction or a collective
  int64_t bytes = -1;                        // of a collective its payload; -1: it moves none
  const std::vector<Call>* calls = nullptr;  // of an action, in the plan; null: it is none
};

// What is recorded: so many records of each rank and queue, 0 for none; of so many steps, from the
// first. What a step fails at is recorded beyond both.
struct TraceLimits {
  int64_t room = 0;
  int64_t steps = std::numeric_limits<int64_t>::max();
};

// One rank's queue. Records beyond its room are counted and dropped, but for what a step failed at.
class TraceBuffer {
 public:
  explicit TraceBuffer(int64_t room) : room_(static_cast<size_t>(room)) { records_.reserve(room_); }
  void Add(const TraceRecord& record) {
    if (records_.size() < room_) {
      records_.push_back(record);
    } else {
      ++dropped_;
    }
  }
  // Adds what a step has failed at, whether or not there is room; may allocate.
  void AddLast(const TraceRecord& record) { records_.push_back(record); }
  void Clear() { records_.clear(); }
  const std::vector<TraceRecord>& records() const { return records_; }
  int64_t dropped() const { return dropped_; }

 private:
  size_t room_;
  std::vector<TraceRecord> records_;
  int64_t dropped_ = 0;
};

// Nanoseconds of the monotonic clock.
int64_t NowNs();

// The records of one rank with their names.
std::vector<TraceEvent> NamedEvents(const LoadedPlan& plan, int rank, const TraceBuffer& buffer);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TRACE_H_
