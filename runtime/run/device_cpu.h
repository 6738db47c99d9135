// This machine's memory and processors as a device that does everything at once, in the caller and
// whoever helps it: what has been issued is done, and marks are nothing.

#ifndef MGC_RUNTIME_RUN_DEVICE_CPU_H_
#define MGC_RUNTIME_RUN_DEVICE_CPU_H_

#include <memory>
#include <vector>

#include "runtime/run/arena.h"
#include "runtime/run/device.h"

namespace mgc {

class CpuDevice final : public Device {
 public:
  // A DeviceFactory.
  static absl::StatusOr<std::unique_ptr<Device>> Create(const DeviceRoom& room, Parallel& parallel);

  void BeginStep(const StepBegin& /*start*/) override {}
  void Put(Queue queue, int64_t address, int64_t bytes,
           absl::FunctionRef<void(char* to)> fill) override;
  void Zero(Queue queue, int64_t address, int64_t bytes) override;
  void Copy(Queue queue, const void* from, void* to, int64_t bytes) override;
  absl::Status RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                         int worker) override;
  absl::Status RunExchanges(Queue queue, const ExchangeGroup& group,
                            absl::Span<const TiledExchange> exchanges) override;
  void Tell(Queue queue, std::function<void()> told) override;
  void Record(const Mark& /*mark*/) override {}
  void Await(Queue /*queue*/, const Mark& /*mark*/, Wait /*why*/) override {}
  absl::Status Check() override { return absl::OkStatus(); }
  absl::Status Drain(bool /*complete*/) override { return absl::OkStatus(); }
  void Look(Queue queue, int64_t address, int64_t bytes,
            absl::FunctionRef<void(const char* from)> look) override;
  void Get(int place, int64_t address, int64_t bytes, void* to) override;

 private:
  CpuDevice(std::vector<Arena> arenas, std::vector<Arena> workspaces, Parallel& parallel);

  const std::vector<Arena> arenas_;
  const std::vector<Arena> workspaces_;  // one per worker, or per rank where these are fewer
  Parallel& parallel_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_DEVICE_CPU_H_
