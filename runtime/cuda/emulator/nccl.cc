#include "runtime/cuda/emulator/nccl.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"
#include "runtime/cuda/emulator/nccl_calls.h"

namespace mgc::cuda::emulator {
namespace {

bool IsLive(NcclState* state, ncclComm_t comm) {
  return state->comms.count(comm) > 0 && comm->live;
}

bool Overlap(const char* a, size_t a_bytes, const char* b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

// What is wrong with a call for data; "": nothing.
std::string Refuse(NcclState* state, const NcclCall& call) {
  if (!IsLive(state, call.comm)) return "a communicator that is given up or was never made";
  if (NcclSizeOf(call.type) == 0) return Text("type ", call.type);
  if (call.stream == nullptr || call.stream->device != call.comm->device) {
    return Text(call.stream == nullptr ? "the default stream" : call.stream->name,
                ", not one of device ", call.comm->device);
  }
  const bool direct = call.kind == NcclCallKind::kSend || call.kind == NcclCallKind::kReceive;
  const int size = call.comm->clique->size;
  if (direct) return call.peer < 0 || call.peer >= size ? Text("peer ", call.peer) : "";
  if (call.kind != NcclCallKind::kAllGather && !NcclReduces(call.type, call.op)) {
    return Text("operation ", call.op, " of type ", call.type);
  }
  const auto all = call.bytes() * static_cast<size_t>(size);
  const size_t in = call.kind == NcclCallKind::kReduceScatter ? all : call.bytes();
  const size_t out = call.kind == NcclCallKind::kAllGather ? all : call.bytes();
  const size_t own = call.bytes() * static_cast<size_t>(call.comm->rank);
  const bool in_place = call.kind == NcclCallKind::kAllGather       ? call.from() == call.to() + own
                        : call.kind == NcclCallKind::kReduceScatter ? call.to() == call.from() + own
                                                                    : call.from() == call.to();
  return !in_place && Overlap(call.from(), in, call.to(), out) ? "buffers that overlap" : "";
}

ncclResult_t IssueData(NcclCall call) {
  NcclState& state = TheNcclState();
  std::unique_lock<std::mutex> lock(state.mutex);
  const std::string refused = Refuse(&state, call);
  if (!refused.empty()) {
    return Wrong(ncclInvalidArgument, Text(NameOf(call.kind), " is given ", refused));
  }
  return Issue(&state, &lock, std::make_shared<NcclCall>(call));
}

}  // namespace

void SetNcclPatience(std::chrono::milliseconds patience) {
  NcclState& state = TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.patience = patience;
}

int NcclCommunicators() {
  NcclState& state = TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return static_cast<int>(std::count_if(state.comms.begin(), state.comms.end(),
                                        [](const auto& entry) { return entry.second->live; }));
}

int OpenNcclCalls() {
  NcclState& state = TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  size_t calls = 0;
  for (const auto& [id, thread] : state.threads) calls += thread.calls.size();
  return static_cast<int>(calls);
}

void BreakNccl(ncclComm_t comm, ncclResult_t error) {
  NcclState& state = TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  for (auto& [made, of_rank] : state.comms) {
    const bool is_meant = comm == nullptr ? of_rank->live : of_rank->clique == comm->clique;
    if (is_meant) of_rank->clique->broken = error;
  }
  state.changed.notify_all();
}

// The clique has calls of the communicator that no other rank has met.
bool IsAwaited(const NcclClique& clique, const ncclComm* comm) {
  const auto of = [comm](const NcclCallPtr& call) { return call != nullptr && call->comm == comm; };
  for (const auto& [key, calls] : clique.meetings) {
    if (std::any_of(calls.begin(), calls.end(), of)) return true;
  }
  for (const auto* queues : {&clique.sends, &clique.receives}) {
    for (const auto& [way, calls] : *queues) {
      if (std::any_of(calls.begin(), calls.end(), of)) return true;
    }
  }
  return false;
}

ncclResult_t GiveUp(ncclComm_t comm, bool abort) {
  NcclState& state = TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!IsLive(&state, comm)) {
    return Wrong(ncclInvalidArgument, "a communicator is given up that was, or was never made");
  }
  NcclClique& clique = *comm->clique;
  comm->live = false;
  if (!abort && IsAwaited(clique, comm)) {
    return Wrong(ncclInvalidUsage, Text("rank ", comm->rank, " of ", clique.name,
                                        " is destroyed while a call of it is under way"));
  }
  if (abort && clique.broken == ncclSuccess) clique.broken = ncclRemoteError;
  state.changed.notify_all();
  return ncclSuccess;
}

}  // namespace mgc::cuda::emulator

namespace emulator = mgc::cuda::emulator;

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  emulator::NcclState& state = emulator::TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.wrong == nullptr ? "" : state.wrong->c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  emulator::NcclState& state = emulator::TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  std::memset(uniqueId, 0, sizeof(*uniqueId));
  const std::string id = emulator::Text("id ", state.ids++);
  std::memcpy(uniqueId->internal, id.data(), id.size());
  state.inits[id];
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  emulator::NcclState& state = emulator::TheNcclState();
  std::unique_lock<std::mutex> lock(state.mutex);
  const std::string id(commId.internal, strnlen(commId.internal, NCCL_UNIQUE_ID_BYTES));
  if (state.inits.count(id) == 0) {
    return emulator::Wrong(ncclInvalidArgument,
                           id.empty() ? "an id that is none"
                                      : "an id of another process; ranks are played in one only");
  }
  std::vector<emulator::NcclCallPtr>& calls = state.inits[id];
  if (calls.empty()) calls.resize(static_cast<size_t>(std::max(nranks, 0)));
  if (static_cast<size_t>(nranks) != calls.size() || rank < 0 || rank >= nranks ||
      calls[static_cast<size_t>(rank)] != nullptr) {
    return emulator::Wrong(ncclInvalidArgument,
                           emulator::Text("rank ", rank, " of ", nranks, " comes to ", id));
  }
  const auto call = std::make_shared<emulator::NcclCall>();
  call->kind = emulator::NcclCallKind::kInit;
  call->made = comm;
  call->device = emulator::CurrentDevice();
  calls[static_cast<size_t>(rank)] = call;
  if (emulator::HaveAllCome(calls)) emulator::MeetInit(&state, id, calls);
  return emulator::Issue(&state, &lock, call);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* /*config*/) {
  emulator::NcclState& state = emulator::TheNcclState();
  std::unique_lock<std::mutex> lock(state.mutex);
  if (!emulator::IsLive(&state, comm)) {
    return emulator::Wrong(ncclInvalidArgument, "split is given no live communicator");
  }
  const auto call = std::make_shared<emulator::NcclCall>();
  call->kind = emulator::NcclCallKind::kSplit;
  call->comm = comm;
  call->device = emulator::CurrentDevice();
  call->color = color;
  call->key = key;
  call->made = newcomm;
  return emulator::Issue(&state, &lock, call);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return emulator::GiveUp(comm, /*abort=*/false); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return emulator::GiveUp(comm, /*abort=*/true); }

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  emulator::NcclState& state = emulator::TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!emulator::IsLive(&state, comm)) {
    return emulator::Wrong(ncclInvalidArgument, "an error is asked of no live communicator");
  }
  *asyncError = comm->clique->broken;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  emulator::NcclState& state = emulator::TheNcclState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ++state.threads[std::this_thread::get_id()].depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  emulator::NcclState& state = emulator::TheNcclState();
  std::unique_lock<std::mutex> lock(state.mutex);
  emulator::NcclThread& thread = state.threads[std::this_thread::get_id()];
  if (thread.depth == 0) {
    return emulator::Wrong(ncclInvalidUsage, "a group of calls ends that has not begun");
  }
  if (--thread.depth > 0) return ncclSuccess;
  const std::vector<emulator::NcclCallPtr> calls = std::move(thread.calls);
  state.threads.erase(std::this_thread::get_id());
  return emulator::Run(&state, &lock, calls);
}

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return emulator::IssueData({emulator::NcclCallKind::kAllReduce, comm, sendbuff, recvbuff, count,
                              datatype, op, -1, stream});
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return emulator::IssueData({emulator::NcclCallKind::kReduceScatter, comm, sendbuff, recvbuff,
                              recvcount, datatype, op, -1, stream});
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return emulator::IssueData({emulator::NcclCallKind::kAllGather, comm, sendbuff, recvbuff,
                              sendcount, datatype, ncclSum, -1, stream});
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return emulator::IssueData({emulator::NcclCallKind::kSend, comm, sendbuff, nullptr, count,
                              datatype, ncclSum, peer, stream});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return emulator::IssueData({emulator::NcclCallKind::kReceive, comm, nullptr, recvbuff, count,
                              datatype, ncclSum, peer, stream});
}
}
