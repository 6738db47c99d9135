// The memory and the queues of the ranks here: what may be issued now and done later.
//
// A rank has two queues, each of which does what it is given in order. Nothing else is ordered but
// by marks: a queue *records* how far it has come and another *awaits* that, which holds up the
// queue and not the caller. The step machine's counters say what has been issued, marks what is
// done. A mark is awaited only after it has been recorded, so that queues never hang.
//
// Marks are the plan's counts, from a step's begin: `kActions` 3 is reached when the rank's first
// three actions are done. The plan's waits name single actions, transfers and collectives; as a
// queue keeps its order, the last of them says all, and the tables keep only that count
// (graph/plan/step_tables.h). No wait leans on the order of a queue that it does not name.
//
// An arena is the device's: others have addresses in it, which At makes pointers of for what the
// device is given to run. Only a device follows them (tools/check_style).

#ifndef MGC_RUNTIME_RUN_DEVICE_H_
#define MGC_RUNTIME_RUN_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "kernels/parallel.h"
#include "runtime/comm/tiles.h"

namespace mgc {

struct LoadedPlan;
class Team;

enum class QueueKind : uint8_t { kCompute, kComm };

// Of the rank at `place` among those here.
struct Queue {
  QueueKind kind = QueueKind::kCompute;
  int place = 0;
};

enum class MarkKind : uint8_t {
  kStarts,       // collectives that the compute queue has come to the start of
  kActions,      // that it has done
  kArrivals,     // items that the communication queue has come to, its own waits being over
  kCollectives,  // that it has done
  kTransfers     // that it has done
};
inline constexpr int kNumMarkKinds = 5;

struct Mark {
  int place = 0;
  MarkKind kind = MarkKind::kActions;
  int64_t count = 0;
};

// All waits of a step, and what would go wrong without each. An item of several ranks is run by one
// queue, its *lead*, when the others have arrived.
enum class Wait : uint8_t {
  kStart,    //  1 a collective for its start on the same rank: it would read too early
  kInstr,    //  2 `wait` for its collective: the result would be read too early
  kCall,     //  3 a call for what calls before it have started: the same
  kSend,     //  4 a send for the action that makes it and those before: the old bytes would go
  kReceive,  //  5 a receive for the last readers of its slot: what they read would be lost
  kAction,   //  6 an action for its transfers: what has not come would be read, or what has
             //    not gone be overwritten
  kTransferMeets,  //  7 a send for the receiver's queue, which has waited as of 5 and for `after`s
  kMembersMeet,    //  8 a collective's lead for the members' queues, which have waited as of 1
  kTransferEnds,   //  9 the receiver's queue for the lead: else 6 would wait for nothing
  kMembersEnd      // 10 the members' queues for the lead: else 2 and 3 would wait for nothing
};
// A step's begin, zeros and scalars, needs none: it goes through the compute queue, and whatever
// communicates what it has written waits for a start or an action behind it. Nor does a step's end:
// it waits for everything (Drain), so that marks count from 0 again. Transfers that a transfer
// comes after stand before it on the same queue.
inline constexpr int kNumWaits = 10;

// What a device is told of a step before anything of it is issued.
struct StepBegin {
  const void* lists = nullptr;  // the same for steps of which the same is issued, data apart
  int64_t first_sample = 0;     // of the step
  bool timed = false;           // a call is to return when the device has done it
  bool looked_at = false;       // Look will be called
};

// Whose exchanges are run: of one set of axes, by its number in LoadedPlan::groups, the ranks of a
// group, ascending.
struct ExchangeGroup {
  int set = 0;
  absl::Span<const int> members;
};

// The end of a transfer whose other end is in another process.
struct FarTransfer {
  int peer = 0;  // the rank there
  bool sends = false;
  char* memory = nullptr;
  int64_t bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Before the first step, once: learns what it is to run. In a run of several processes these are
  // connected by now, and all call it. The errors of what it cannot run.
  virtual absl::Status Open(const LoadedPlan& /*plan*/, Team& /*team*/) { return absl::OkStatus(); }
  // Whether what has ends in other processes is this device's to move. If not, it is moved in this
  // machine's memory (runtime/comm/communicator.h).
  virtual bool reaches_far() const { return false; }
  // Ends what waits for other processes, with an error. Any thread, at any time.
  virtual void Abort() {}

  // A step begins, or evaluation of one. Nothing is issued by other threads.
  virtual void BeginStep(const StepBegin& start) = 0;

  // Where `address` of a rank's arena is, to be handed to what the device runs.
  void* At(int place, int64_t address) const {
    return bases_[static_cast<size_t>(place)] + address;
  }

  // What a queue is given. What arguments point to is read before the call returns, but for bytes
  // of arenas. One thread at a time for each queue; any number for several.

  // Lets `fill` write bytes that the arena then has at `address`; all of them, or it may leave
  // those out that the memory has anyway.
  virtual void Put(Queue queue, int64_t address, int64_t bytes,
                   absl::FunctionRef<void(char* to)> fill) = 0;
  virtual void Zero(Queue queue, int64_t address, int64_t bytes) = 0;
  // From any rank's arena to any other's.
  virtual void Copy(Queue queue, const void* from, void* to, int64_t bytes) = 0;
  // The workspace in `run` is the device's affair. `worker`: who calls. Where a device runs at
  // once, the error of the kernel or exchange; where it runs later, Check and Drain have it.
  virtual absl::Status RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                                 int worker) = 0;
  // On the queue of a member's, the members here having come to it. Of those elsewhere, if there
  // are any, tiles are not read.
  virtual absl::Status RunExchanges(Queue queue, const ExchangeGroup& group,
                                    absl::Span<const TiledExchange> exchanges) = 0;
  // Of a device that reaches far.
  virtual absl::Status RunTransfer(Queue queue, const FarTransfer& transfer);
  // Calls `told` when the queue has come here: at once, or later from another thread.
  virtual void Tell(Queue queue, std::function<void()> told) = 0;

  // The rank's queue has come so far: its compute queue for starts and actions, else the other.
  virtual void Record(const Mark& mark) = 0;
  // The queue goes on when the mark is reached.
  virtual void Await(Queue queue, const Mark& mark, Wait why) = 0;

  // The first error of what has run; it stays.
  virtual absl::Status Check() = 0;
  // Ends a step: waits until everything is done and takes all marks back. Not `complete`: the step
  // has failed, and whether what was issued is done is of no matter.
  virtual absl::Status Drain(bool complete) = 0;
  // When Drain has failed: how many of its items of communication a rank had done by then; -1:
  // nobody knows.
  virtual int64_t items_done(int /*place*/) const { return -1; }
  // Lets `look` read bytes that the arena has at `address` when the queue has done all it has been
  // given. During a step, from the thread that issues to the queue; no other queue is waited for
  // but by that one's marks.
  virtual void Look(Queue queue, int64_t address, int64_t bytes,
                    absl::FunctionRef<void(const char* from)> look) = 0;
  // Bytes of an arena as all that has been issued leaves them.
  virtual void Get(int place, int64_t address, int64_t bytes, void* to) = 0;

  // Puts bytes that are there already.
  void PutBytes(Queue queue, int64_t address, const void* from, int64_t bytes);

 protected:
  explicit Device(std::vector<char*> bases) : bases_(std::move(bases)) {}
  Device(const Device&) = default;  // the same memory

 private:
  const std::vector<char*> bases_;  // by place
};

inline Queue ComputeQueue(int place) { return {QueueKind::kCompute, place}; }
inline Queue CommQueue(int place) { return {QueueKind::kComm, place}; }
// The queue that records a mark.
Queue QueueOf(const Mark& mark);

// What a device has to hold.
struct DeviceRoom {
  std::vector<int64_t> arenas;  // bytes by place; zero at first
  // Where arenas must lie, by place, for a device whose memory is this machine's: zeros, on pages
  // of their own. Empty: where the device likes.
  std::vector<char*> places;
  int64_t workspace = 0;  // bytes of one kernel's scratch
  int64_t kernels = 1;    // that run at the same time
  int processes = 1;      // of the run
  // Ranks of processes of this host that come before this one.
  int64_t ranks_before = 0;
};

// ResourceExhausted when the system has no room. `parallel` must outlive the device.
using DeviceFactory =
    std::function<absl::StatusOr<std::unique_ptr<Device>>(const DeviceRoom&, Parallel& parallel)>;

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_DEVICE_H_
