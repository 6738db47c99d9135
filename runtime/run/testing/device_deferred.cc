#include "runtime/run/testing/device_deferred.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "runtime/run/device_cpu.h"

namespace mgc {
namespace {

constexpr uint64_t kNewPreferenceOneIn = 16;  // entries

// Tiled exchanges with lists of their own.
struct HeldExchanges {
  explicit HeldExchanges(absl::Span<const TiledExchange> from) {
    for (const TiledExchange& tiled : from) {
      inputs.emplace_back(tiled.inputs.begin(), tiled.inputs.end());
      outputs.emplace_back(tiled.outputs.begin(), tiled.outputs.end());
      exchanges.push_back({tiled.exchange, inputs.back(), absl::MakeConstSpan(outputs.back())});
    }
  }

  std::deque<std::vector<const char*>> inputs;  // which stay where they are
  std::deque<std::vector<char*>> outputs;
  std::vector<TiledExchange> exchanges;
};

}  // namespace

DeferredDevice::DeferredDevice(std::unique_ptr<Device> inner, int places,
                               const DeferredOptions& options)
    : Device(*inner),
      inner_(std::move(inner)),
      options_(options),
      dice_(options.seed),
      queues_(static_cast<size_t>(2 * places)),
      reached_(static_cast<size_t>(places)) {
  for (QueueState& queue : queues_) queue.preference = dice_();
}

void DeferredDevice::Issue(Queue queue, Entry entry) {
  std::lock_guard<std::mutex> lock(mutex_);
  StateOf(queue).entries.push_back(std::move(entry));
}

void DeferredDevice::Put(Queue queue, int64_t address, int64_t bytes,
                         absl::FunctionRef<void(char* to)> fill) {
  const auto staging = std::make_shared<std::string>(static_cast<size_t>(bytes), '\0');
  fill(&(*staging)[0]);
  IssueWork(queue, [this, queue, address, staging] {
    inner_->PutBytes(queue, address, staging->data(), static_cast<int64_t>(staging->size()));
    return absl::OkStatus();
  });
}

void DeferredDevice::Zero(Queue queue, int64_t address, int64_t bytes) {
  IssueWork(queue, [this, queue, address, bytes] {
    inner_->Zero(queue, address, bytes);
    return absl::OkStatus();
  });
}

void DeferredDevice::Copy(Queue queue, const void* from, void* to, int64_t bytes) {
  IssueWork(queue, [this, queue, from, to, bytes] {
    inner_->Copy(queue, from, to, bytes);
    return absl::OkStatus();
  });
}

absl::Status DeferredDevice::RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                                       int /*worker*/) {
  const std::vector<void*> inputs(run.inputs.begin(), run.inputs.end());
  const std::vector<void*> outputs(run.outputs.begin(), run.outputs.end());
  IssueWork(queue, [this, queue, &kernel, inputs, outputs, issued = run]() mutable {
    issued.inputs = inputs;
    issued.outputs = outputs;
    return inner_->RunKernel(queue, kernel, issued, 0);
  });
  return absl::OkStatus();
}

absl::Status DeferredDevice::RunExchanges(Queue queue, const ExchangeGroup& group,
                                          absl::Span<const TiledExchange> exchanges) {
  const auto held = std::make_shared<const HeldExchanges>(exchanges);
  IssueWork(queue, [this, queue, group, held] {  // the plan keeps the group's ranks
    return inner_->RunExchanges(queue, group, held->exchanges);
  });
  return absl::OkStatus();
}

void DeferredDevice::Tell(Queue queue, std::function<void()> told) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    DoQueue(queue);
  }
  told();
}

void DeferredDevice::Record(const Mark& mark) { Issue(QueueOf(mark), {{}, mark, {}}); }

void DeferredDevice::Await(Queue queue, const Mark& mark, Wait why) {
  if (options_.left_out != why) Issue(queue, {{}, {}, mark});
}

bool DeferredDevice::CanGoOn(const QueueState& queue) {
  if (queue.entries.empty()) return false;
  const absl::optional<Mark>& awaited = queue.entries.front().awaited;
  return !awaited.has_value() || Reached(*awaited) >= awaited->count;
}

// What the queue that is preferred among those that can go on comes to. Mutex held.
void DeferredDevice::DoNext() {
  if (dice_() % kNewPreferenceOneIn == 0) queues_[dice_() % queues_.size()].preference = dice_();
  QueueState* next = nullptr;
  for (QueueState& queue : queues_) {
    if (!CanGoOn(queue)) continue;
    if (next == nullptr || queue.preference > next->preference) next = &queue;
  }
  MGC_CHECK(next != nullptr) << "a queue awaits what nobody has recorded";
  const Entry entry = std::move(next->entries.front());
  next->entries.pop_front();
  if (entry.recorded.has_value()) Reached(*entry.recorded) = entry.recorded->count;
  if (entry.work != nullptr && status_.ok()) status_.Update(entry.work());
}

// Until the queue is empty; how far others get meanwhile is chance. Mutex held.
void DeferredDevice::DoQueue(Queue queue) {
  while (!StateOf(queue).entries.empty()) DoNext();
}

// Mutex held.
void DeferredDevice::DoAll() {
  for (QueueState& queue : queues_) {
    while (!queue.entries.empty()) DoNext();
  }
}

absl::Status DeferredDevice::Check() {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status DeferredDevice::Drain(bool complete) {
  std::lock_guard<std::mutex> lock(mutex_);
  DoAll();
  for (auto& counts : reached_) counts.fill(0);
  status_.Update(inner_->Drain(complete));
  return status_;
}

void DeferredDevice::Look(Queue queue, int64_t address, int64_t bytes,
                          absl::FunctionRef<void(const char* from)> look) {
  std::string seen(static_cast<size_t>(bytes), '\0');
  {
    std::lock_guard<std::mutex> lock(mutex_);
    DoQueue(queue);
    inner_->Get(queue.place, address, bytes, &seen[0]);
  }
  look(seen.data());
}

void DeferredDevice::Get(int place, int64_t address, int64_t bytes, void* to) {
  std::lock_guard<std::mutex> lock(mutex_);
  DoAll();
  inner_->Get(place, address, bytes, to);
}

DeviceFactory DeferredDevices(const DeferredOptions& options) {
  return [options](const DeviceRoom& room,
                   Parallel& parallel) -> absl::StatusOr<std::unique_ptr<Device>> {
    MGC_ASSIGN_OR_RETURN(std::unique_ptr<Device> inner, CpuDevice::Create(room, parallel));
    return std::make_unique<DeferredDevice>(std::move(inner), static_cast<int>(room.arenas.size()),
                                            options);
  };
}

}  // namespace mgc
