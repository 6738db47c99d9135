// On GPUs that the CPU plays: what is measured there says nothing of a GPU, but all that measures
// runs.
#include "tools/benchmarks/calibrate_gpu.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/config/parallel_config.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kWait = 1e-5, kOverhead = 2e-6;

OpTime Took(double work, double bytes) { return {"add", "f32", 0, bytes, work + kWait}; }

TEST(CalibrateGpuTest, TheHostsWaitsAreTakenOut) {
  const std::vector<OpTime> times = {Took(0, 8), Took(3e-6, 8), Took(0, 16), Took(1e-3, 1e9)};
  EXPECT_NEAR(WaitOf(times), kWait, 1e-12);
  EXPECT_EQ(WaitOf({Took(1e-3, 1e9)}), 0);
  const ReplayedStep step = {times, 1e-3 + 3e-6 + 4 * kOverhead};
  EXPECT_NEAR(OverheadOf({step, step, {times, 1}}, kWait), kOverhead, 1e-12);
  // What is replayed faster than it was timed costs nothing.
  EXPECT_EQ(OverheadOf({{times, 1e-9}}, kWait), 0);
  const std::vector<OpTime> replayed = AsReplayed(times, kWait, kOverhead);
  EXPECT_NEAR(replayed[0].seconds, kOverhead, 1e-12);
  EXPECT_NEAR(replayed[3].seconds, 1e-3 + kOverhead, 1e-12);
}

// The least that has all parts: products, an update, sums of two ranks.
GpuCalibrationSetting Least() {
  GpuCalibrationSetting setting;
  setting.gpt2 = LoadModelPreset("gpt2-tiny").value();
  setting.llama = LoadModelPreset("llama-tiny").value();
  for (ModelConfig* model : {&setting.gpt2, &setting.llama}) {
    model->layers = 1;
    model->hidden = 32;
    model->heads = model->kv_heads = 2;
    model->head_dim = 16;
    model->ffn = 64;
    model->vocab = 128;
    model->max_positions = 32;
  }
  setting.tiny = setting.gpt2;
  setting.types = {DType::kF32};
  setting.sequences = 1;
  setting.seq_length = 32;
  setting.tiny_length = 4;
  setting.rounds = 1;
  setting.warm_up_seconds = 0;
  return setting;
}

// Rows of the head's product begin at multiples of what tensor cores read.
TEST(CalibrateGpuTest, TheLargeModelHasAPaddedVocabulary) {
  const absl::StatusOr<GpuCalibrationSetting> setting = DefaultGpuCalibration(Gpus());
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_EQ(setting->gpt2.vocab, 50304);
}

TEST(CalibrateGpuTest, AMachineThatIsMeasuredPredicts) {
  const RunDevice device = MakeRunDevice(kCudaDevice, {}).value();
  GpuCalibrationSetting setting = Least();
  setting.gpus = FindGpus().value();
  EXPECT_EQ(setting.gpus.memory, int64_t{16} << 30);
  setting.gpus.count = 2;
  const Machine like = FindMachinePreset("h100x8").value();
  std::vector<std::string> notes;
  const absl::StatusOr<Machine> machine = CalibrateGpu(setting, device, like, &notes);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_THAT(notes, ElementsAre("networks beyond this machine's are those of h100x8"));
  EXPECT_EQ(machine->host, KernelHost::kGpu);
  EXPECT_EQ(machine->cores, 0);
  EXPECT_EQ(machine->memory, setting.gpus.memory);
  ASSERT_EQ(machine->compute.size(), 1u);
  EXPECT_EQ(machine->compute[0].dtype, "f32");
  EXPECT_GT(machine->FactorOf("attention", "f32"), 0);
  ASSERT_EQ(machine->tiers.size(), like.tiers.size());
  EXPECT_NE(machine->tiers[0].latency, like.tiers[0].latency);
  EXPECT_EQ(machine->tiers[1], like.tiers[1]);
  const auto plan = CompileModel(setting.gpt2, Copies(1, 1, 32, DType::kF32), *machine);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->machine, *machine);
}

TEST(CalibrateGpuTest, WhatIsNotMeasuredIsAnotherMachinesOfGpus) {
  const RunDevice device = MakeRunDevice(kCudaDevice, {}).value();
  std::vector<std::string> notes;
  const Machine cpu = FindMachinePreset("cpu-threads").value();
  const absl::Status refused = CalibrateGpu(Least(), device, cpu, &notes).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("nearest legal: --cluster h100x8"));
}

}  // namespace
}  // namespace mgc
