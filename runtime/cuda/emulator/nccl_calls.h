// What the emulated NCCL knows: communicators, and calls that wait for those of other ranks.

#ifndef MGC_RUNTIME_CUDA_EMULATOR_NCCL_CALLS_H_
#define MGC_RUNTIME_CUDA_EMULATOR_NCCL_CALLS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/emulator/nccl.h"
#include "runtime/cuda/emulator/nccl_sums.h"

namespace mgc::cuda::emulator {
struct NcclClique;
}  // namespace mgc::cuda::emulator

// Handles are kept when they are given up, so that one of something given up is known.
struct ncclComm {
  std::shared_ptr<mgc::cuda::emulator::NcclClique> clique;
  int rank = 0;
  int device = 0;
  bool live = true;
  int64_t collectives = 0;  // called so far
  int64_t splits = 0;
};

namespace mgc::cuda::emulator {

enum class NcclCallKind { kAllReduce, kReduceScatter, kAllGather, kSend, kReceive, kInit, kSplit };

const char* NameOf(NcclCallKind kind);

struct NcclCall {
  NcclCallKind kind = NcclCallKind::kAllReduce;
  ncclComm* comm = nullptr;
  const void* sent = nullptr;
  void* received = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int peer = 0;
  cudaStream_t stream = nullptr;
  // Of init and split:
  int device = 0;  // the current one
  int color = 0;
  int key = 0;
  ncclComm_t* made = nullptr;

  bool over = false;
  ncclResult_t result = ncclSuccess;

  const char* from() const { return static_cast<const char*>(sent); }
  char* to() const { return static_cast<char*>(received); }
  size_t bytes() const { return count * NcclSizeOf(type); }
};
using NcclCallPtr = std::shared_ptr<NcclCall>;

// Ranks that have communicators with each other.
struct NcclClique {
  std::string name;
  int size = 0;
  ncclResult_t broken = ncclSuccess;
  std::map<std::pair<NcclCallKind, int64_t>, std::vector<NcclCallPtr>>
      meetings;                                                            // by number; by rank
  std::map<std::pair<int, int>, std::deque<NcclCallPtr>> sends, receives;  // by sender, receiver
};

// Of a thread.
struct NcclThread {
  int depth = 0;
  std::vector<NcclCallPtr> calls;
};

struct NcclState {
  std::mutex mutex;  // of all that follows
  std::condition_variable changed;
  std::chrono::milliseconds patience{20000};
  std::set<std::string> wrongs;        // that were told of, in words that stay
  const std::string* wrong = nullptr;  // the last of them
  int64_t ids = 0;
  std::map<std::string, std::vector<NcclCallPtr>> inits;  // by unique id; by rank
  std::map<ncclComm*, std::unique_ptr<ncclComm>> comms;
  std::map<std::thread::id, NcclThread> threads;
};

// The one of the process. Never destroyed: threads may outlive main.
NcclState& TheNcclState();

// A fault, and the error that goes with it. The lock is held.
ncclResult_t Wrong(ncclResult_t result, const std::string& what);

// Has a call done now or, in a group of calls, when the thread's outermost group ends. The lock is
// that of the state.
ncclResult_t Issue(NcclState* state, std::unique_lock<std::mutex>* lock, const NcclCallPtr& call);
// Enters the calls of one thread, all of them before it waits for any.
ncclResult_t Run(NcclState* state, std::unique_lock<std::mutex>* lock,
                 const std::vector<NcclCallPtr>& calls);
// All ranks have come to the init of one id.
void MeetInit(NcclState* state, const std::string& id, const std::vector<NcclCallPtr>& calls);
bool HaveAllCome(const std::vector<NcclCallPtr>& calls);  // no null

}  // namespace mgc::cuda::emulator

#endif  // MGC_RUNTIME_CUDA_EMULATOR_NCCL_CALLS_H_
