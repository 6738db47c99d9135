#include "runtime/run/device_cpu.h"

#include <cstring>
#include <utility>

#include "graph/base/status.h"
#include "runtime/comm/run_exchanges.h"

namespace mgc {
namespace {

// Bytes worth handing to another thread.
constexpr int64_t kZeroedAtOnce = int64_t{1} << 20;
constexpr int64_t kCopiedAtOnce = int64_t{64} << 10;

std::vector<char*> BasesOf(const std::vector<Arena>& arenas) {
  std::vector<char*> bases;
  bases.reserve(arenas.size());
  for (const Arena& arena : arenas) bases.push_back(arena.data());
  return bases;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CpuDevice::Create(const DeviceRoom& room,
                                                          Parallel& parallel) {
  std::vector<Arena> arenas;
  for (size_t p = 0; p < room.arenas.size(); ++p) {
    MGC_ASSIGN_OR_RETURN(Arena arena,
                         room.places.empty()
                             ? Arena::Create(room.arenas[p], parallel)
                             : Arena::CreateIn(room.places[p], room.arenas[p], parallel));
    arenas.push_back(std::move(arena));
  }
  std::vector<Arena> workspaces;
  for (int64_t k = 0; k < room.kernels; ++k) {
    MGC_ASSIGN_OR_RETURN(Arena workspace, Arena::Create(room.workspace, parallel));
    workspaces.push_back(std::move(workspace));
  }
  return std::unique_ptr<Device>(new CpuDevice(std::move(arenas), std::move(workspaces), parallel));
}

CpuDevice::CpuDevice(std::vector<Arena> arenas, std::vector<Arena> workspaces, Parallel& parallel)
    : Device(BasesOf(arenas)),
      arenas_(std::move(arenas)),
      workspaces_(std::move(workspaces)),
      parallel_(parallel) {}

void CpuDevice::Put(Queue queue, int64_t address, int64_t /*bytes*/,
                    absl::FunctionRef<void(char* to)> fill) {
  fill(static_cast<char*>(At(queue.place, address)));
}

void CpuDevice::Zero(Queue queue, int64_t address, int64_t bytes) {
  char* const from = static_cast<char*>(At(queue.place, address));
  parallel_.For(bytes, kZeroedAtOnce,
                [from](int64_t begin, int64_t end) { ZeroStretch(from + begin, end - begin); });
}

void CpuDevice::Copy(Queue /*queue*/, const void* from, void* to, int64_t bytes) {
  parallel_.For(bytes, kCopiedAtOnce, [from, to](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

absl::Status CpuDevice::RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                                  int worker) {
  KernelRun with_scratch = run;
  const bool by_rank = workspaces_.size() == arenas_.size();
  with_scratch.workspace = workspaces_[static_cast<size_t>(by_rank ? queue.place : worker)].data();
  return kernel.Run(with_scratch, parallel_);
}

absl::Status CpuDevice::RunExchanges(Queue /*queue*/, const ExchangeGroup& /*group*/,
                                     absl::Span<const TiledExchange> exchanges) {
  return mgc::RunExchanges(exchanges, parallel_);
}

void CpuDevice::Tell(Queue /*queue*/, std::function<void()> told) { told(); }

void CpuDevice::Look(Queue queue, int64_t address, int64_t /*bytes*/,
                     absl::FunctionRef<void(const char* from)> look) {
  look(static_cast<const char*>(At(queue.place, address)));
}

void CpuDevice::Get(int place, int64_t address, int64_t bytes, void* to) {
  std::memcpy(to, At(place, address), static_cast<size_t>(bytes));
}

}  // namespace mgc
