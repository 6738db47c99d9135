#include "runtime/cuda/emulator/nccl_calls.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"

namespace mgc::cuda::emulator {
namespace {

std::string Describe(const NcclCall& call) {
  const std::string where =
      call.comm == nullptr ? "" : Text(", rank ", call.comm->rank, " of ", call.comm->clique->name);
  if (call.kind == NcclCallKind::kInit || call.kind == NcclCallKind::kSplit) {
    return Text(NameOf(call.kind), where);
  }
  const bool direct = call.kind == NcclCallKind::kSend || call.kind == NcclCallKind::kReceive;
  return Text(NameOf(call.kind), " of ", call.count, " elements of type ", call.type,
              direct ? Text(", peer ", call.peer) : Text(", operation ", call.op), where);
}

void End(const std::vector<NcclCallPtr>& calls, ncclResult_t result) {
  for (const NcclCallPtr& call : calls) {
    call->over = true;
    call->result = result;
  }
}

ncclComm* MakeComm(NcclState* state, const std::shared_ptr<NcclClique>& clique, int rank,
                   int device) {
  auto comm = std::make_unique<ncclComm>();
  comm->clique = clique;
  comm->rank = rank;
  comm->device = device;
  ncclComm* const at = comm.get();
  state->comms[at] = std::move(comm);
  return at;
}

std::shared_ptr<NcclClique> MakeClique(std::string name, size_t size) {
  auto clique = std::make_shared<NcclClique>();
  clique->name = std::move(name);
  clique->size = static_cast<int>(size);
  return clique;
}

// What has to be done for calls that have met, and the order that it makes between their streams.

// Lets a device be the current one.
class On {
 public:
  explicit On(int device) : before_(CurrentDevice()) { SetCurrentDevice(device); }
  ~On() { SetCurrentDevice(before_); }
  On(const On&) = delete;

 private:
  const int before_;
};

void Order(cudaStream_t before, cudaStream_t after) {
  if (before == after) return;
  const On on(before->device);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, before);
  cudaStreamWaitEvent(after, event, 0);
  cudaEventDestroy(event);
}

// What a rank's stream does itself of a call: it comes to it, with what it uses.
void Come(const NcclCall& call) {
  const On on(call.comm->device);
  LaunchShape shape;
  shape.grid_x = shape.block = 1;
  LaunchedKernel uses;
  if (call.sent != nullptr) uses.pointers.push_back({call.sent, false});
  if (call.received != nullptr) uses.pointers.push_back({call.received, true});
  Launch(
      shape, call.stream, [] {}, uses);
}

void IssueCollective(const std::vector<NcclCallPtr>& calls) {
  const NcclCall first = *calls[0];
  for (const NcclCallPtr& call : calls) Come(*call);
  for (const NcclCallPtr& call : calls) Order(call->stream, first.stream);
  std::vector<const char*> from;
  std::vector<char*> to;
  for (const NcclCallPtr& call : calls) {
    from.push_back(call->from());
    to.push_back(call->to());
  }
  LaunchShape shape;
  shape.grid_x = shape.block = 1;
  const On on(first.comm->device);
  Launch(shape, first.stream, [first, from, to] {
    const size_t bytes = first.bytes();
    if (first.kind == NcclCallKind::kAllGather) {
      std::vector<char> all;
      for (const char* piece : from) all.insert(all.end(), piece, piece + bytes);
      for (char* result : to) std::memcpy(result, all.data(), all.size());
      return;
    }
    const bool scatters = first.kind == NcclCallKind::kReduceScatter;
    const std::vector<char> sum =
        NcclReduce(from, first.count * (scatters ? from.size() : 1), first.type, first.op);
    for (size_t rank = 0; rank < to.size(); ++rank) {
      std::memcpy(to[rank], sum.data() + (scatters ? rank * bytes : 0), bytes);
    }
  });
  for (const NcclCallPtr& call : calls) Order(first.stream, call->stream);
}

void IssueTransfer(const NcclCall& send, const NcclCall& receive) {
  Come(send);
  Come(receive);
  Order(send.stream, receive.stream);
  cudaMemcpyAsync(receive.to(), send.from(), send.bytes(), cudaMemcpyDeviceToDevice,
                  receive.stream);
  Order(receive.stream, send.stream);
}

void MeetCollective(const std::vector<NcclCallPtr>& calls) {
  const auto what = [](const NcclCall& c) {
    return std::make_tuple(c.kind, c.count, c.type, c.op);
  };
  for (const NcclCallPtr& call : calls) {
    if (what(*call) == what(*calls[0])) continue;
    return End(calls, Wrong(ncclInvalidUsage, Text("ranks do not call the same: ",
                                                   Describe(*calls[0]), "; ", Describe(*call))));
  }
  IssueCollective(calls);
  End(calls, ncclSuccess);
}

void MeetSplit(NcclState* state, const std::vector<NcclCallPtr>& calls) {
  std::map<int, std::vector<NcclCallPtr>> by_color;
  for (const NcclCallPtr& call : calls) by_color[call->color].push_back(call);
  for (auto& [color, members] : by_color) {
    std::stable_sort(members.begin(), members.end(),
                     [](const NcclCallPtr& a, const NcclCallPtr& b) { return a->key < b->key; });
    const std::shared_ptr<NcclClique> clique =
        MakeClique(Text("split ", members[0]->comm->splits, " of ", members[0]->comm->clique->name,
                        ", color ", color),
                   members.size());
    for (size_t rank = 0; rank < members.size(); ++rank) {
      *members[rank]->made =
          color == NCCL_SPLIT_NOCOLOR
              ? nullptr
              : MakeComm(state, clique, static_cast<int>(rank), members[rank]->device);
    }
  }
  End(calls, ncclSuccess);
}

void EnterTransfer(const NcclCallPtr& call) {
  NcclClique& clique = *call->comm->clique;
  const bool sends = call->kind == NcclCallKind::kSend;
  const std::pair<int, int> way = sends ? std::make_pair(call->comm->rank, call->peer)
                                        : std::make_pair(call->peer, call->comm->rank);
  (sends ? clique.sends : clique.receives)[way].push_back(call);
  std::deque<NcclCallPtr>& from = clique.sends[way];
  std::deque<NcclCallPtr>& to = clique.receives[way];
  if (from.empty() || to.empty()) return;
  const NcclCallPtr send = from.front();
  const NcclCallPtr receive = to.front();
  from.pop_front();
  to.pop_front();
  if (send->bytes() != receive->bytes()) {
    return End({send, receive}, Wrong(ncclInvalidUsage, Text("other sizes: ", Describe(*send), "; ",
                                                             Describe(*receive))));
  }
  IssueTransfer(*send, *receive);
  End({send, receive}, ncclSuccess);
}

// A rank has come to a call of which all ranks of its clique have one.
void EnterMeeting(NcclState* state, const NcclCallPtr& call) {
  ncclComm& comm = *call->comm;
  NcclClique& clique = *comm.clique;
  const bool splits = call->kind == NcclCallKind::kSplit;
  const NcclCallKind kind =
      splits ? NcclCallKind::kSplit : NcclCallKind::kAllReduce;  // stands for all others
  const std::pair<NcclCallKind, int64_t> key = {kind, splits ? comm.splits++ : comm.collectives++};
  std::vector<NcclCallPtr>& calls = clique.meetings[key];
  calls.resize(static_cast<size_t>(clique.size));
  calls[static_cast<size_t>(comm.rank)] = call;
  if (!HaveAllCome(calls)) return;
  const std::vector<NcclCallPtr> met = std::move(calls);
  clique.meetings.erase(key);
  splits ? MeetSplit(state, met) : MeetCollective(met);
}

void Enter(NcclState* state, const NcclCallPtr& call) {
  if (call->kind == NcclCallKind::kInit) return;  // has been entered under its id
  if (call->comm->clique->broken != ncclSuccess) return End({call}, call->comm->clique->broken);
  const bool direct = call->kind == NcclCallKind::kSend || call->kind == NcclCallKind::kReceive;
  direct ? EnterTransfer(call) : EnterMeeting(state, call);
}

// Calls that no other rank will find any more.
void Leave(const std::vector<NcclCallPtr>& calls) {
  for (const NcclCallPtr& call : calls) {
    if (call->over || call->comm == nullptr) continue;
    NcclClique& clique = *call->comm->clique;
    if (clique.broken == ncclSuccess) clique.broken = ncclSystemError;
    clique.meetings.clear();
    clique.sends.clear();
    clique.receives.clear();
  }
}

bool IsOver(const NcclCall& call) {
  return call.over || (call.comm != nullptr && call.comm->clique->broken != ncclSuccess);
}

}  // namespace

const char* NameOf(NcclCallKind kind) {
  static constexpr const char* kNames[] = {"all-reduce", "reduce-scatter", "all-gather", "send",
                                           "receive",    "init",           "split"};
  return kNames[static_cast<int>(kind)];
}

NcclState& TheNcclState() {
  static NcclState* const state = new NcclState;
  return *state;
}

ncclResult_t Wrong(ncclResult_t result, const std::string& what) {
  Fault("NCCL: " + what);
  NcclState& state = TheNcclState();
  state.wrong = &*state.wrongs.insert(what).first;
  return result;
}

// NCCL refuses two ranks of a communicator on one device.
bool ShareADevice(const std::vector<NcclCallPtr>& calls, const std::string& name) {
  std::map<int, size_t> ranks;
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    const auto [it, is_new] = ranks.try_emplace(calls[rank]->device, rank);
    if (is_new) continue;
    End(calls, Wrong(ncclInvalidUsage, Text("ranks ", it->second, " and ", rank, " of ", name,
                                            " are both on device ", it->first)));
    return true;
  }
  return false;
}

void MeetInit(NcclState* state, const std::string& id, const std::vector<NcclCallPtr>& calls) {
  const std::shared_ptr<NcclClique> clique = MakeClique("all(" + id + ")", calls.size());
  if (ShareADevice(calls, clique->name)) return;
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    *calls[rank]->made = MakeComm(state, clique, static_cast<int>(rank), calls[rank]->device);
  }
  End(calls, ncclSuccess);
}

bool HaveAllCome(const std::vector<NcclCallPtr>& calls) {
  return std::all_of(calls.begin(), calls.end(), [](const NcclCallPtr& c) { return c != nullptr; });
}

ncclResult_t Run(NcclState* state, std::unique_lock<std::mutex>* lock,
                 const std::vector<NcclCallPtr>& calls) {
  for (const NcclCallPtr& call : calls) Enter(state, call);
  state->changed.notify_all();
  const auto all_over = [&] {
    return std::all_of(calls.begin(), calls.end(), [](const NcclCallPtr& c) { return IsOver(*c); });
  };
  if (!state->changed.wait_for(*lock, state->patience, all_over)) {
    for (const NcclCallPtr& call : calls) {
      if (!IsOver(*call)) Wrong(ncclSystemError, "not all ranks come to " + Describe(*call));
    }
    Leave(calls);
    state->changed.notify_all();
    return ncclSystemError;
  }
  for (const NcclCallPtr& call : calls) {
    const ncclResult_t result = call->over ? call->result : call->comm->clique->broken;
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

ncclResult_t Issue(NcclState* state, std::unique_lock<std::mutex>* lock, const NcclCallPtr& call) {
  NcclThread& thread = state->threads[std::this_thread::get_id()];
  if (thread.depth == 0) return Run(state, lock, {call});
  thread.calls.push_back(call);
  return ncclSuccess;
}

}  // namespace mgc::cuda::emulator
