// Launches of the emulated runtime.
#include "kernels/cuda/emulator/launch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/access.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/fault.h"
#include "kernels/cuda/emulator/state.h"
#include "kernels/cuda/emulator/statics.h"

namespace mgc::cuda::emulator {
namespace {

thread_local uint64_t seed = 0;

// "" or what is wrong with an argument; else its byte is noted.
std::string NoteArgument(const Call& call, int device, const Memory& memory,
                         const LaunchedPointer& argument, Work* work) {
  if (argument.at == nullptr) return "";
  const std::string far = call.WhyOutOfReach(device, argument.at);
  if (!far.empty()) return "is given " + far;
  Range range{argument.at, 0, argument.written};
  std::string wrong = memory.Check("is given", range);
  if (!wrong.empty()) return wrong;
  if (memory.KindOf(range.at) == MemoryKind::kPageable) return "is given pageable host memory";
  range.bytes = 1;
  if (memory.Check("", range).empty()) work->ranges.push_back(range);  // not behind the last byte
  return "";
}

void Run(const LaunchShape& shape, uint64_t of_launch, int device, const void* kernel,
         const std::string& what, const std::function<void()>& body) {
  State& state = TheState();
  std::vector<Memory::Region> allocations;
  if (AccessWatch::enabled()) {
    const std::lock_guard<std::mutex> lock(state.mutex);
    allocations = state.memory.Regions();
    const auto out_of_reach = [&](const Memory::Region& region) {
      return region.device >= 0 && region.device != device &&
             state.peers.count({device, region.device}) == 0;
    };
    allocations.erase(std::remove_if(allocations.begin(), allocations.end(), out_of_reach),
                      allocations.end());
  }
  const std::string wrong = RunLaunch(shape, of_launch, kernel, body, allocations);
  if (!wrong.empty()) FaultOfExecution(cudaErrorLaunchFailure, Text(what, ", ", wrong));
  const std::lock_guard<std::mutex> lock(state.mutex);
  const std::string beside = state.memory.CheckGuards();
  if (!beside.empty())
    FaultOfExecution(cudaErrorIllegalAddress, Text("during ", what, " ", beside));
}

}  // namespace

uint64_t SeedOfThread() { return seed; }

void SetSeed(uint64_t new_seed) {
  seed = new_seed;
  State& state = TheState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.scheduler.Seed(new_seed);
}

int Launch(const LaunchShape& shape, Stream handle, std::function<void()> body,
           const LaunchedKernel& kernel) {
  Call call("a launch");
  if (call.refused() != cudaSuccess) return call.refused();
  const std::string name = Statics::Get().NameOf(kernel.function);
  if (!IsLaunchable(shape)) {
    return call.Wrong(cudaErrorInvalidConfiguration,
                      Text("of ", name, " with ", shape.grid_x, " x ", shape.grid_y, " x ",
                           shape.grid_z, " blocks of ", shape.block, " threads and ",
                           shape.shared_bytes, " shared bytes: no device takes it"));
  }
  CUstream_st* const stream = call.StreamOf(static_cast<cudaStream_t>(handle));
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->device != CurrentDevice()) {
    return call.Wrong(cudaErrorInvalidResourceHandle,
                      Text("of ", name, " is given ", stream->name, " of device ", stream->device,
                           " while device ", CurrentDevice(), " is current"));
  }
  Work work;
  work.what = Text("launch ", call.state().launches++, name.empty() ? "" : " of ", name);
  for (const LaunchedPointer& pointer : kernel.pointers) {
    const std::string wrong =
        NoteArgument(call, stream->device, call.state().memory, pointer, &work);
    if (!wrong.empty()) return call.Wrong(cudaErrorInvalidValue, Text("of ", name, " ", wrong));
  }
  work.run = [shape, of_launch = seed, device = stream->device, function = kernel.function,
              what = work.what,
              body = std::move(body)] { Run(shape, of_launch, device, function, what, body); };
  return call.Issue(stream, std::move(work));
}

}  // namespace mgc::cuda::emulator
