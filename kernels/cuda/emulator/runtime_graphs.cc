// Captures and graphs of the emulated runtime.
#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"

namespace mgc::cuda::emulator {
namespace {

cudaError_t Begin(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Call call("cudaStreamBeginCapture");
  if (call.refused() != cudaSuccess) return call.refused();
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->is_default) {
    return call.Wrong(cudaErrorStreamCaptureUnsupported, "is given the default stream");
  }
  if (stream->capture != nullptr) {
    return call.Wrong(cudaErrorIllegalState,
                      Text("is given ", stream->name, ", which is captured"));
  }
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->streams = {stream};
  stream->branch = 0;
  stream->last_nodes.clear();
  call.state().captures.push_back(stream->capture);
  return cudaSuccess;
}

// The first stream of a capture with a node that none of its origin's last comes after; null: none.
const CUstream_st* Unjoined(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size());
  std::vector<size_t> left = capture.origin->last_nodes;
  while (!left.empty()) {
    const size_t node = left.back();
    left.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    left.insert(left.end(), capture.nodes[node].before.begin(), capture.nodes[node].before.end());
  }
  for (const CUstream_st* stream : capture.streams) {
    for (size_t node : stream->last_nodes) {
      if (!joined[node]) return stream;
    }
  }
  return nullptr;
}

// What keeps a capture from becoming a graph.
cudaError_t Ending(Call* call, const Capture& capture) {
  if (capture.invalid) return call->Return(cudaErrorStreamCaptureInvalidated);
  const bool other_thread = capture.thread != std::this_thread::get_id();
  if (other_thread && capture.mode != cudaStreamCaptureModeRelaxed) {
    return call->Wrong(cudaErrorStreamCaptureWrongThread, "is called by another thread than began");
  }
  if (const CUstream_st* const stream = Unjoined(capture)) {
    return call->Wrong(cudaErrorStreamCaptureUnjoined,
                       Text("ends the capture of ", capture.origin->name,
                            ", which does not wait for ", stream->name));
  }
  return cudaSuccess;
}

cudaError_t End(cudaStream_t handle, cudaGraph_t* made) {
  Call call("cudaStreamEndCapture");
  *made = nullptr;
  CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const CapturePtr capture = stream->capture;
  if (capture == nullptr) {
    return call.Wrong(cudaErrorIllegalState,
                      Text("is given ", stream->name, ", which is not captured"));
  }
  if (capture->origin != stream) {
    capture->invalid = true;
    return call.Wrong(
        cudaErrorStreamCaptureUnmatched,
        Text("is given ", stream->name, ", but the capture began with ", capture->origin->name));
  }
  const cudaError_t error = Ending(&call, *capture);
  for (CUstream_st* member : capture->streams) {
    member->capture = nullptr;
    member->last_nodes.clear();
  }
  State& state = call.state();
  state.captures.erase(std::find(state.captures.begin(), state.captures.end(), capture));
  if (error != cudaSuccess) return error;
  *made = state.graphs.Make();
  (*made)->nodes = std::move(capture->nodes);
  (*made)->handles.resize((*made)->nodes.size());
  return cudaSuccess;
}

// The graph or its executable form; null and a fault.
template <class T>
T* Live(Call* call, const Handles<T>& handles, T* handle) {
  if (handles.IsLive(handle)) return handle;
  call->Wrong(cudaErrorInvalidValue, "is given a graph that is destroyed or was never made");
  return nullptr;
}

cudaError_t Instantiate(cudaGraphExec_t* made, cudaGraph_t handle, unsigned long long flags) {
  Call call("cudaGraphInstantiate");
  if (call.refused() != cudaSuccess) return call.refused();
  State& state = call.state();
  const CUgraph_st* const graph = Live(&call, state.graphs, handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  if (flags != 0) return call.Wrong(cudaErrorNotSupported, "is given flags");
  CUgraphExec_st* const exec = state.execs.Make();
  exec->name = Text("graph ", state.execs.made().size() - 1);
  exec->nodes = graph->nodes;
  for (Node& node : exec->nodes) {
    node.work.what += " of " + exec->name;
    if (exec->tracks.size() <= node.branch) exec->tracks.resize(node.branch + 1);
    std::shared_ptr<Track>& track = exec->tracks[node.branch];
    if (track == nullptr) track = state.scheduler.NewTrack(node.device);
  }
  *made = exec;
  return cudaSuccess;
}

// "" or what is wrong with the memory that a graph uses.
std::string WrongIn(const Memory& memory, const CUgraphExec_st& exec) {
  for (const Node& node : exec.nodes) {
    for (const Range& range : node.work.ranges) {
      const std::string wrong = memory.Check(range.written ? "writes" : "reads", range);
      if (!wrong.empty()) return Text(node.work.what, " ", wrong);
      if (memory.KindOf(range.at) == MemoryKind::kPageable) {
        return Text(node.work.what, " uses memory that is no longer allocated");
      }
    }
  }
  return "";
}

cudaError_t Launch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  Call call("cudaGraphLaunch");
  if (call.refused() != cudaSuccess) return call.refused();
  State& state = call.state();
  CUgraphExec_st* const exec = Live(&call, state.execs, handle);
  if (exec == nullptr) return cudaErrorInvalidValue;
  CUstream_st* const stream = call.StreamOf(stream_handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return call.Wrong(cudaErrorStreamCaptureUnsupported, "is captured, which is not emulated");
  }
  const std::string wrong = WrongIn(state.memory, *exec);
  if (!wrong.empty()) return call.Wrong(cudaErrorInvalidValue, "is wrong: " + wrong);
  const cudaError_t error =
      call.Issue(stream, {"begin of " + exec->name, nullptr, {}, false}, {exec->last});
  if (error != cudaSuccess) return error;
  std::vector<ItemPtr> items;
  for (const Node& node : exec->nodes) {
    std::vector<ItemPtr> before = {stream->last};
    for (size_t other : node.before) before.push_back(items[other]);
    items.push_back(state.scheduler.Issue(node.work, exec->tracks[node.branch], before));
  }
  const cudaError_t end = call.Issue(stream, {"end of " + exec->name, nullptr, {}, false}, items);
  exec->last = stream->last;
  return end;
}

template <class T>
cudaError_t Destroy(const char* name, T* handle, Handles<T> State::*handles) {
  Call call(name, Call::Kind::kFrees);
  T* const live = Live(&call, call.state().*handles, handle);
  if (live == nullptr) return cudaErrorInvalidValue;
  live->live = false;
  live->nodes.clear();
  if constexpr (std::is_same_v<T, CUgraphExec_st>) live->tracks.clear();
  return call.Return(static_cast<cudaError_t>(StickyError()));
}

}  // namespace
}  // namespace mgc::cuda::emulator

extern "C" {
namespace emulator = mgc::cuda::emulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return emulator::Begin(stream, mode);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return emulator::End(stream, graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus* status) {
  emulator::Call call("cudaStreamIsCapturing");
  if (call.refused() != cudaSuccess) return call.refused();
  const CUstream_st* const stream = call.StreamOf(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  *mode = emulator::ExchangeMode(*mode);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  emulator::Call call("cudaGraphGetNodes");
  if (call.refused() != cudaSuccess) return call.refused();
  CUgraph_st* const graph = emulator::Live(&call, call.state().graphs, handle);
  if (graph == nullptr) return cudaErrorInvalidValue;
  if (nodes == nullptr) {
    *count = graph->handles.size();
    return cudaSuccess;
  }
  for (size_t n = 0; n < *count; ++n) {
    nodes[n] = n < graph->handles.size() ? &graph->handles[n] : nullptr;
  }
  *count = std::min(*count, graph->handles.size());
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return emulator::Instantiate(exec, graph, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return emulator::Launch(exec, stream);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return emulator::Destroy("cudaGraphExecDestroy", exec, &emulator::State::execs);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return emulator::Destroy("cudaGraphDestroy", graph, &emulator::State::graphs);
}
}
