// What goes wrong on several GPUs ends the step in all processes, with what and where; nothing
// hangs. Processes are threads, NCCL is the emulated one.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/emulator/watch.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/heap_regions.h"
#include "runtime/cuda/emulator/nccl.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tools/devices/devices.h"

namespace mgc {
namespace {

using cuda::emulator::SetDeviceMemory;
using cuda::emulator::SetDevices;
using cuda::emulator::SetNcclPatience;
using cuda::emulator::TakeFault;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// Far longer than any of these tests takes: it is never what ends a wait.
constexpr std::chrono::minutes kPatience(5);
constexpr int64_t kPlanned = 4;  // steps, of which one is run

class GpuFailures : public testing::Test {
 protected:
  GpuFailures() {
    SetNcclPatience(kPatience);
    Take(GptCase(2, 1, 1));
  }
  ~GpuFailures() override {
    EXPECT_EQ(TakeFault(), "");
    EXPECT_EQ(cuda::emulator::NcclCommunicators(), 0);
    EXPECT_EQ(cuda::emulator::Leaks(), "");
    SetNcclPatience(std::chrono::seconds(20));
    SetDevices(8);
  }

  void Take(const TrainCase& c) {
    case_ = c;
    case_.layers = 2;
    case_.parallel.micro_batch_size = 1;
    case_.parallel.global_batch_size = 2;
    plan_ = CompileCase(case_);
  }

  // A first step, of one process of several or of a whole run; its error.
  absl::Status Step(const absl::optional<ProcessPlace>& process, int gpus = 0,
                    const StepMachine::ProbeFn& probe = nullptr) const {
    const absl::StatusOr<RunDevice> device = MakeRunDevice(kCudaDevice, {true, false, gpus});
    if (!device.ok()) return device.status();
    TrainOptions options = OptionsFor(*plan_, case_, kPlanned, /*workers=*/1, device->kernels());
    options.device = device->make;
    options.process = process;
    options.probe = probe;
    const auto trainer = Trainer::Create(*plan_, options);
    return trainer.ok() ? (*trainer)->Step().status() : trainer.status();
  }

  // A step in two processes, with what each of them probes; what each ends with.
  std::vector<absl::Status> InTwo(const StepMachine::ProbeFn& of_first,
                                  const StepMachine::ProbeFn& of_second) {
    const ProcessMap map = *ProcessMap::Create(plan_->mesh.world_size(), 2);
    std::vector<absl::Status> ended(2);
    std::vector<std::thread> processes;
    for (int p = 0; p < 2; ++p) {
      processes.emplace_back([&, p] {
        HeapRegions regions(world_, p);
        SharedLink link(regions);
        ProcessPlace place = {&map, p, &link};
        place.ranks_before = map.RanksOf(p).begin;
        ended[static_cast<size_t>(p)] = Step(place, 0, p == 0 ? of_first : of_second);
      });
    }
    for (std::thread& process : processes) process.join();
    return ended;
  }

  TrainCase case_;
  absl::StatusOr<Plan> plan_ = absl::UnknownError("none yet");
  HeapWorld world_{2};  // of one run in two processes
};

// An instruction's error after so many of them.
StepMachine::ProbeFn FailAfter(std::atomic<int>* instructions) {
  return [instructions](const Rank&, const CommItem* item) -> absl::Status {
    if (item != nullptr || --*instructions > 0) return absl::OkStatus();
    return absl::DataLossError("the instruction fails");
  };
}

TEST_F(GpuFailures, OfAnotherProcessEndAStep) {
  ASSERT_TRUE(plan_.ok()) << plan_.status();
  std::atomic<int> instructions{20};
  const std::vector<absl::Status> ended = InTwo(nullptr, FailAfter(&instructions));
  EXPECT_EQ(ended[1].code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ended[0].code(), absl::StatusCode::kUnavailable) << ended[0];
  EXPECT_THAT(std::string(ended[0].message()),
              AllOf(HasSubstr("ranks 0, 1, 0F0"), HasSubstr("all-reduce tp"),
                    HasSubstr("NCCL: a collective: remote process exited"),
                    HasSubstr("  -> layer.forward[")));
}

// The launcher has found a process that does not come on, and ends the run.
TEST_F(GpuFailures, TheRunsEndEndsAWait) {
  ASSERT_TRUE(plan_.ok()) << plan_.status();
  std::promise<void> over;
  std::shared_future<void> is_over = over.get_future();
  std::atomic<int> instructions{20};
  const auto stand_still = [&](const Rank&, const CommItem* item) {
    if (item != nullptr || --instructions > 0) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the other one comes and waits
    world_.Abort(absl::AbortedError("rank 1 does not come on"));
    is_over.wait();
    return absl::DataLossError("the instruction fails");
  };
  std::atomic<bool> first_ended{false};
  std::thread let([&] {
    while (!first_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    over.set_value();
  });
  const ProcessMap map = *ProcessMap::Create(plan_->mesh.world_size(), 2);
  absl::Status first, second;
  std::thread other([&] {
    HeapRegions regions(world_, 1);
    SharedLink link(regions);
    ProcessPlace place = {&map, 1, &link};
    place.ranks_before = 1;
    second = Step(place, 0, stand_still);
  });
  {
    HeapRegions regions(world_, 0);
    SharedLink link(regions);
    first = Step(ProcessPlace{&map, 0, &link});
    first_ended = true;
  }
  let.join();
  other.join();
  EXPECT_EQ(first.code(), absl::StatusCode::kAborted) << first;
  EXPECT_THAT(std::string(first.message()), HasSubstr("rank 1 does not come on"));
  EXPECT_FALSE(second.ok());
}

// Errors that NCCL meets at the next call, or tells of when the host waits at a step's end.
TEST_F(GpuFailures, OfNcclEndAStep) {
  ASSERT_TRUE(plan_.ok()) << plan_.status();
  const auto break_it = [](int instructions) -> StepMachine::ProbeFn {
    const auto left = std::make_shared<std::atomic<int>>(instructions);
    return [left](const Rank&, const CommItem* item) {
      if (item == nullptr && --*left == 0) {
        cuda::emulator::BreakNccl(nullptr, ncclRemoteError);
      }
      return absl::OkStatus();
    };
  };
  absl::Status ended = Step(absl::nullopt, 2, break_it(20));
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
  EXPECT_THAT(std::string(ended.message()), AllOf(HasSubstr("ranks 0, 1"), HasSubstr("NCCL")));
  std::atomic<int> all{0};
  const auto count = [&all](const Rank&, const CommItem* item) {
    all += item == nullptr ? 1 : 0;
    return absl::OkStatus();
  };
  ASSERT_EQ(Step(absl::nullopt, 2, count), absl::OkStatus());
  ended = Step(absl::nullopt, 2, break_it(all));
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("NCCL: a collective: remote process"));
}

TEST_F(GpuFailures, OfPlacesAreFoundAtStart) {
  ASSERT_TRUE(plan_.ok()) << plan_.status();
  EXPECT_THAT(std::string(Step(absl::nullopt, 3).message()), HasSubstr("nearest legal: 2"));
  EXPECT_THAT(std::string(Step(absl::nullopt, 9).message()), HasSubstr("nearest legal: 8"));
  SetDevices(1);
  for (const absl::Status& ended : InTwo(nullptr, nullptr)) {
    EXPECT_THAT(std::string(ended.message()),
                HasSubstr("ranks 0 and 1, of several processes, are both on GPU 0000:10:00.0"));
  }
}

TEST_F(GpuFailures, OfMemoryAreFoundAtStart) {
  ASSERT_TRUE(plan_.ok()) << plan_.status();
  SetDeviceMemory(1000);
  const absl::Status ended = Step(absl::nullopt, 1);
  SetDeviceMemory(size_t{16} << 30);
  EXPECT_EQ(ended.code(), absl::StatusCode::kResourceExhausted) << ended;
  EXPECT_THAT(std::string(ended.message()), HasSubstr("GPU 0: the 2 ranks here need "));
  EXPECT_THAT(std::string(ended.message()), HasSubstr("the GPU has 1000 free of 1000"));
}

// GPUs that ranks share need each other's memory.
TEST_F(GpuFailures, OfReachAreFoundAtStart) {
  Take(GptCase(2, 2, 1));
  ASSERT_TRUE(plan_.ok()) << plan_.status();
  SetDevices(8, /*peer_access=*/false);
  EXPECT_THAT(std::string(Step(absl::nullopt, 2).message()),
              HasSubstr("GPU 0 cannot reach that of GPU 1; nearest legal: 1 GPU, or 4"));
  EXPECT_EQ(Step(absl::nullopt, 4), absl::OkStatus());
}

}  // namespace
}  // namespace mgc
