// A device for tests that does as late and in as bad an order as marks allow.
//
// What is issued lies in its queue until somebody must have it done (Drain, Get, Look, Tell). It is
// then done one by one, whoever asks: of the queues whose next entry may go on always the one that
// is preferred most, in an order of preference drawn with a seed and changed now and then. So a
// queue may stand still while all others run to their ends; and what is wrong with a seed is wrong
// with it every time, on any machine.

#ifndef MGC_RUNTIME_RUN_TESTING_DEVICE_DEFERRED_H_
#define MGC_RUNTIME_RUN_TESTING_DEVICE_DEFERRED_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "absl/types/optional.h"
#include "runtime/run/device.h"

namespace mgc {

struct DeferredOptions {
  uint64_t seed = 0;
  absl::optional<Wait> left_out;  // a kind of wait that queues do not keep
};

class DeferredDevice final : public Device {
 public:
  // What is done is done by `inner`, one call at a time.
  DeferredDevice(std::unique_ptr<Device> inner, int places, const DeferredOptions& options);

  void BeginStep(const StepBegin& start) override { inner_->BeginStep(start); }
  void Put(Queue queue, int64_t address, int64_t bytes,
           absl::FunctionRef<void(char* to)> fill) override;
  void Zero(Queue queue, int64_t address, int64_t bytes) override;
  void Copy(Queue queue, const void* from, void* to, int64_t bytes) override;
  absl::Status RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                         int worker) override;
  absl::Status RunExchanges(Queue queue, const ExchangeGroup& group,
                            absl::Span<const TiledExchange> exchanges) override;
  void Tell(Queue queue, std::function<void()> told) override;
  void Record(const Mark& mark) override;
  void Await(Queue queue, const Mark& mark, Wait why) override;
  absl::Status Check() override;
  absl::Status Drain(bool complete) override;
  void Look(Queue queue, int64_t address, int64_t bytes,
            absl::FunctionRef<void(const char* from)> look) override;
  void Get(int place, int64_t address, int64_t bytes, void* to) override;

 private:
  using Work = std::function<absl::Status()>;
  // Exactly one of the three.
  struct Entry {
    Work work;
    absl::optional<Mark> recorded;
    absl::optional<Mark> awaited;
  };
  struct QueueState {
    std::deque<Entry> entries;
    uint64_t preference = 0;
  };

  QueueState& StateOf(Queue queue) {
    const size_t kind = queue.kind == QueueKind::kComm ? 1 : 0;
    return queues_[2 * static_cast<size_t>(queue.place) + kind];
  }
  int64_t& Reached(const Mark& mark) {
    return reached_[static_cast<size_t>(mark.place)][static_cast<size_t>(mark.kind)];
  }
  void Issue(Queue queue, Entry entry);
  void IssueWork(Queue queue, Work work) { Issue(queue, {std::move(work), {}, {}}); }
  bool CanGoOn(const QueueState& queue);
  void DoNext();
  void DoQueue(Queue queue);
  void DoAll();

  const std::unique_ptr<Device> inner_;
  const DeferredOptions options_;
  std::mutex mutex_;  // of what follows
  std::mt19937_64 dice_;
  std::vector<QueueState> queues_;  // a place's compute queue, then its other
  std::vector<std::array<int64_t, kNumMarkKinds>> reached_;  // by place
  absl::Status status_;
};

// A DeviceFactory: around a CpuDevice.
DeviceFactory DeferredDevices(const DeferredOptions& options);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_DEVICE_DEFERRED_H_
