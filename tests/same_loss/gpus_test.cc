// Training on several GPUs is what it is on one: bit for bit where ranks share them and our kernels
// add, within rounding where each rank has its own and NCCL does; in one process and in several,
// which are threads here. And of the waits that streams keep none can be left out.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/cuda/testing/device_tiles.h"
#include "runtime/run/testing/heap_processes.h"
#include "tests/same_loss/cuda_runs.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/sized_test.h"
#include "tools/devices/devices.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;  // issued, captured, launched; in several processes all are issued
constexpr int kMostRanks = 8;

int GpusHere() {
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  return gpus;
}

TrainCase Small(TrainCase c) {
  c.layers = 2;
  c.parallel.micro_batch_size = 1;
  c.parallel.global_batch_size = 2 * c.dp;
  return c;
}

std::vector<TrainCase> FewCases() {
  return {Small(WithSequenceParallel(GptCase(2, 2, 1))), Small(WithZero(LlamaCase(1, 1, 2), 3))};
}

std::vector<TrainCase> ManyCases() {
  std::vector<TrainCase> cases = FewCases();
  cases.push_back(WithZero(
      WithSequenceParallel(WithSchedule(GptCase(2, 2, 2), ScheduleKind::kInterleaved, 2))));
  cases.push_back(GptCase(1, 4, 1));  // groups of the first and the last stage only
  for (const std::vector<TrainCase>& more : {SameLossCases(), ContextParallelCases()}) {
    for (const TrainCase& c : more) {
      const ParallelConfig& p = c.parallel;
      const int64_t ranks = p.tp * p.cp * p.pp * c.dp;
      if (ranks > 1 && ranks <= kMostRanks) cases.push_back(c);
    }
  }
  return cases;
}

CudaSwitches On(int64_t gpus) {
  return {/*graphs=*/true, /*check_each=*/false, static_cast<int>(gpus)};
}

// What each of several processes finds of the losses and norms.
struct OfProcess {
  std::vector<double> losses, norms;
};

std::vector<OfProcess> TrainInProcesses(const Plan& plan, const TrainCase& c, int processes) {
  std::vector<OfProcess> all(static_cast<size_t>(processes));
  InHeapProcesses(plan.mesh.world_size(), processes, false, [&](const ProcessPlace& place) {
    const absl::StatusOr<RunDevice> device = MakeRunDevice(kCudaDevice, {});
    ASSERT_TRUE(device.ok()) << device.status();
    TrainOptions options = OptionsFor(plan, c, kSteps, /*workers=*/1, device->kernels());
    options.device = device->make;
    options.process = place;
    options.process->ranks_before = place.map->RanksOf(place.self).begin;
    const auto trainer = Trainer::Create(plan, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    for (int64_t step = 0; step < kSteps; ++step) {
      const absl::StatusOr<StepRecord> record = (*trainer)->Step();
      ASSERT_TRUE(record.ok()) << record.status();
      all[static_cast<size_t>(place.self)].losses.push_back(record->loss);
      all[static_cast<size_t>(place.self)].norms.push_back(record->grad_norm);
    }
  });
  return all;
}

class GpusTest : public testing::Test {
 public:
  explicit GpusTest(TrainCase c) : case_(std::move(c)) {}

  void TestBody() override {
    const absl::StatusOr<Plan> plan = CompileCase(case_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const int64_t ranks = plan->mesh.world_size();
    if (GpusHere() < ranks) GTEST_SKIP() << "needs " << ranks << " GPUs";
    SetDeviceOrder(static_cast<uint64_t>(ranks));
    const absl::StatusOr<TrainResult> one = Train(*plan, On(1));
    ASSERT_TRUE(one.ok()) << one.status();
    const absl::StatusOr<TrainResult> own = Train(*plan, On(ranks));
    ASSERT_TRUE(own.ok()) << own.status();
    ExpectNear(*one, *own);
    EXPECT_EQ(own->planned_peaks, own->measured_peaks);
    if (ranks > 2) {
      const absl::StatusOr<TrainResult> shared = Train(*plan, On(2));
      ASSERT_TRUE(shared.ok()) << shared.status();
      ExpectSameBits(*one, *shared);
    }
    for (const OfProcess& process : TrainInProcesses(*plan, case_, 2)) {
      ExpectNearLosses(process.losses, process.norms, *one);
#ifdef MGC_CUDA_EMULATED  // whose NCCL adds in one order, wherever ranks are
      EXPECT_EQ(process.losses, own->losses);
      EXPECT_EQ(process.norms, own->grad_norms);
#endif
    }
    EXPECT_EQ(DeviceFault(), "");
  }

 private:
  absl::StatusOr<TrainResult> Train(const Plan& plan, const CudaSwitches& cuda) const {
    return TrainOn(plan, case_, kCudaDevice, cuda, kSteps, kSteps);
  }

  const TrainCase case_;
};

#ifdef MGC_CUDA_EMULATED
// A device of which one kind of wait is left out.
class LeavingOut final : public Device {
 public:
  LeavingOut(std::unique_ptr<Device> inner, Wait left_out, int* left)
      : Device(*inner), inner_(std::move(inner)), left_out_(left_out), left_(left) {}

  absl::Status Open(const LoadedPlan& plan, Team& team) override {
    return inner_->Open(plan, team);
  }
  void BeginStep(const StepBegin& start) override { inner_->BeginStep(start); }
  void Put(Queue queue, int64_t address, int64_t bytes,
           absl::FunctionRef<void(char* to)> fill) override {
    inner_->Put(queue, address, bytes, fill);
  }
  void Zero(Queue queue, int64_t address, int64_t bytes) override {
    inner_->Zero(queue, address, bytes);
  }
  void Copy(Queue queue, const void* from, void* to, int64_t bytes) override {
    inner_->Copy(queue, from, to, bytes);
  }
  absl::Status RunKernel(Queue queue, const Kernel& kernel, const KernelRun& run,
                         int worker) override {
    return inner_->RunKernel(queue, kernel, run, worker);
  }
  absl::Status RunExchanges(Queue queue, const ExchangeGroup& group,
                            absl::Span<const TiledExchange> exchanges) override {
    return inner_->RunExchanges(queue, group, exchanges);
  }
  void Tell(Queue queue, std::function<void()> told) override {
    inner_->Tell(queue, std::move(told));
  }
  void Record(const Mark& mark) override { inner_->Record(mark); }
  void Await(Queue queue, const Mark& mark, Wait why) override {
    if (why == left_out_) {
      ++*left_;
    } else {
      inner_->Await(queue, mark, why);
    }
  }
  absl::Status Check() override { return inner_->Check(); }
  absl::Status Drain(bool complete) override { return inner_->Drain(complete); }
  void Look(Queue queue, int64_t address, int64_t bytes,
            absl::FunctionRef<void(const char* from)> look) override {
    inner_->Look(queue, address, bytes, look);
  }
  void Get(int place, int64_t address, int64_t bytes, void* to) override {
    inner_->Get(place, address, bytes, to);
  }

 private:
  const std::unique_ptr<Device> inner_;
  const Wait left_out_;
  int* const left_;
};

// A kind of wait, left out of a step on several GPUs, is a fault of the emulated ones.
class LeftOutTest : public testing::Test {
 public:
  LeftOutTest(Wait wait, int gpus) : wait_(wait), gpus_(gpus) {}

  void TestBody() override {
    const TrainCase c = FewCases()[0];
    const absl::StatusOr<Plan> plan = CompileCase(c);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const absl::StatusOr<RunDevice> device = MakeRunDevice(kCudaDevice, On(gpus_));
    ASSERT_TRUE(device.ok()) << device.status();
    TrainOptions options = OptionsFor(*plan, c, kSteps, /*workers=*/2, device->kernels());
    int left = 0;
    options.device = [&](const DeviceRoom& room,
                         Parallel& parallel) -> absl::StatusOr<std::unique_ptr<Device>> {
      absl::StatusOr<std::unique_ptr<Device>> made = device->make(room, parallel);
      if (!made.ok()) return made.status();
      return std::make_unique<LeavingOut>(*std::move(made), wait_, &left);
    };
    ASSERT_EQ(TrainWith(*plan, options, 1).status(), absl::OkStatus());
    EXPECT_GT(left, 0);
    EXPECT_NE(DeviceFault(), "");
  }

 private:
  const Wait wait_;
  const int gpus_;
};

void RegisterLeftOut(Wait wait, int gpus) {
  RegisterSized<LeftOutTest>("LeftOutTest",
                             absl::StrCat("wait", static_cast<int>(wait) + 1, "_gpus", gpus),
                             [wait, gpus] { return new LeftOutTest(wait, gpus); });
}
#endif

// With a count of 1 a few cases, else all.
void RegisterCases(int count) {
  const std::vector<TrainCase> cases = count > 1 ? ManyCases() : FewCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    RegisterSized<GpusTest>("GpusTest", absl::StrCat(i, "_", NameOf(cases[i])),
                            [c = cases[i]] { return new GpusTest(c); });
  }
#ifdef MGC_CUDA_EMULATED
  // Of kCall and kReceive this plan leans on none: other waits imply them
  // (runtime/run/device_test.cc has plans that do).
  for (Wait wait : {Wait::kStart, Wait::kInstr, Wait::kSend, Wait::kAction, Wait::kTransferMeets,
                    Wait::kTransferEnds}) {
    RegisterLeftOut(wait, 4);
  }
  for (Wait wait : {Wait::kMembersMeet, Wait::kMembersEnd}) RegisterLeftOut(wait, 2);
#endif
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterCases); }
