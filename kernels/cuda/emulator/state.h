// The handles of the emulated runtime, and all that it knows.

#ifndef MGC_KERNELS_CUDA_EMULATOR_STATE_H_
#define MGC_KERNELS_CUDA_EMULATOR_STATE_H_

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/memory.h"
#include "kernels/cuda/emulator/runtime.h"
#include "kernels/cuda/emulator/scheduler.h"

namespace mgc::cuda::emulator {

// What a graph does: nodes after nodes, by their indices.
struct Node {
  Work work;
  std::vector<size_t> before;
  size_t branch = 0;  // of the stream it was captured from
  int device = 0;     // of that
};

// Streams from whose calls one graph is made.
struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Node> nodes;
  std::vector<CUstream_st*> streams;
};
using CapturePtr = std::shared_ptr<Capture>;

}  // namespace mgc::cuda::emulator

// Handles are kept when they are destroyed and none is made twice, so that one of something
// destroyed is known.
struct CUstream_st {
  std::string name;
  bool live = true;
  int device = 0;
  bool is_default = false;  // the device's legacy default stream
  bool blocking = true;     // orders itself with that one
  std::shared_ptr<mgc::cuda::emulator::Track> track;
  mgc::cuda::emulator::ItemPtr last;
  mgc::cuda::emulator::CapturePtr capture;  // null: none
  size_t branch = 0;                        // place in `capture->streams`
  std::vector<size_t> last_nodes;           // which the next node comes after
};

struct CUevent_st {
  std::string name;
  bool live = true;
  int device = 0;
  bool timed = true;
  bool recorded = false;
  mgc::cuda::emulator::ItemPtr item;
  mgc::cuda::emulator::CapturePtr capture;  // that it was recorded in last, if in any
  std::vector<size_t> nodes;
};

struct CUgraphNode_st {};

struct CUgraph_st {
  bool live = true;
  std::vector<mgc::cuda::emulator::Node> nodes;
  std::vector<CUgraphNode_st> handles;  // one for each node
};

struct CUgraphExec_st {
  std::string name;
  bool live = true;
  std::vector<mgc::cuda::emulator::Node> nodes;
  std::vector<std::shared_ptr<mgc::cuda::emulator::Track>> tracks;  // of branches
  mgc::cuda::emulator::ItemPtr last;  // launches of one graph come one after the other
};

namespace mgc::cuda::emulator {

// Those of one kind.
template <class T>
class Handles {
 public:
  T* Make() {
    made_.push_back(std::make_unique<T>());
    known_.insert(made_.back().get());
    return made_.back().get();
  }
  bool IsLive(T* handle) const { return known_.count(handle) > 0 && handle->live; }
  const std::vector<std::unique_ptr<T>>& made() const { return made_; }

 private:
  std::vector<std::unique_ptr<T>> made_;
  std::set<T*> known_;
};

struct State {
  static constexpr int kDevices = 8;  // at first

  State();
  void SetCount(int count);

  std::mutex mutex;  // of all that follows
  Scheduler scheduler{&mutex};
  Memory memory;
  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> execs;
  std::set<CUstream_st*> live_streams;  // the legacy default streams too
  std::vector<CUstream_st*> legacy;     // by device
  int devices = 0;                      // that there are
  bool have_peer_access = true;         // whether they may reach each other's memory
  std::set<std::pair<int, int>> peers;  // which device has been let to reach which one's
  std::vector<CapturePtr> captures;     // that have not ended
  int64_t launches = 0, copies = 0, memsets = 0, functions = 0;  // issued so far
};

// The one of the process. Never destroyed: threads may outlive main.
State& TheState();

// The calling thread's current device.
int CurrentDevice();
void SetCurrentDevice(int device);

// One call of the runtime: takes the mutex, refuses what is always refused, keeps the error.
class Call {
 public:
  enum class Kind : uint8_t {
    kUsual,
    kUnsafe,  // not while something is captured, as CUDA's modes of capture say
    kFrees    // done even where an error stays, which is returned
  };

  explicit Call(const char* name, Kind kind = Kind::kUsual);
  ~Call();
  Call(const Call&) = delete;

  State& state() { return state_; }
  Scheduler::Lock* lock() { return &lock_; }
  const char* name() const { return name_; }
  // What refuses the call already; cudaSuccess: nothing does.
  cudaError_t refused() const { return refused_; }

  // What the call returns. The thread's last error from now on, unless it is a success.
  cudaError_t Return(cudaError_t error);
  // The same, and a fault.
  cudaError_t Wrong(cudaError_t error, const std::string& what);

  // Null and a fault if there is no such stream.
  CUstream_st* StreamOf(cudaStream_t stream);
  // "" or why what runs on a device cannot follow a pointer.
  std::string WhyOutOfReach(int device, const void* at) const;
  // Puts work into a stream, after `also` too, or into the graph that it is captured for.
  cudaError_t Issue(CUstream_st* stream, Work work, const std::vector<ItemPtr>& also = {});
  // What is over when all is that a stream has been given.
  ItemPtr LastOf(CUstream_st* stream);
  // A fault and an error if a capture is on that forbids it: of `stream`, or if null of any.
  cudaError_t RefuseCapturing(CUstream_st* stream);

 private:
  cudaError_t Refuse(Kind kind);

  const char* const name_;
  State& state_;
  Scheduler::Lock lock_;
  cudaError_t refused_ = cudaSuccess;
};

// Of this thread.
cudaError_t PeekError();
cudaError_t TakeError();
cudaStreamCaptureMode ExchangeMode(cudaStreamCaptureMode mode);

// Whether the thread runs a function of cudaLaunchHostFunc, from now on.
void SetInHostFunction(bool in);

}  // namespace mgc::cuda::emulator

#endif  // MGC_KERNELS_CUDA_EMULATOR_STATE_H_
