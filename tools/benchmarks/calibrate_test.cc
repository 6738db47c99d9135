#include "tools/benchmarks/calibrate.h"

#include <algorithm>
#include <string>
#include <vector>

#include "graph/text/machine_text.h"
#include "gtest/gtest.h"
#include "passes/config/parallel_config.h"
#include "passes/plan/time/ring_time.h"
#include "tools/benchmarks/training.h"

namespace mgc {
namespace {

// A machine whose every number is to be found again.
Machine Known() {
  Machine machine = FindMachinePreset("cpu-threads").value();
  machine.memory_bandwidth = 2e10;
  machine.memory_efficiency = 1;
  machine.op_overhead = 1e-6;
  machine.compute = {{"bf16", 4e11, 1.0, {{1e7, 0.25}, {1e10, 1.0}}},
                     {"f32", 2e11, 0.9, {{1e7, 0.5}, {1e9, 1.0}, {1e10, 0.9}}}};
  machine.ops = {{"adamw", "f32", 1},        {"add", "bf16", 1},        {"add", "f32", 1},
                 {"attention", "bf16", 3.5}, {"attention", "f32", 2.5}, {"gelu", "bf16", 3},
                 {"gelu", "f32", 0.5},       {"matmul", "bf16", 1},     {"matmul", "f32", 1}};
  return machine;
}

// What cost.h says.
OpTime TimeOn(const Machine& machine, const std::string& op, const std::string& dtype, double flops,
              double bytes) {
  const double base =
      std::max(flops / machine.RateOf(dtype).At(flops), bytes / machine.BytesPerSecond());
  return {op, dtype, flops, bytes, machine.op_overhead + machine.FactorOf(op, dtype) * base};
}

TEST(CalibrateTest, FindsTheMachineOfWhichTimesWereMade) {
  const Machine known = Known();
  std::vector<OpTime> times;
  for (const std::string dtype : {"f32", "bf16"}) {
    for (const double flops : {1e7, 1e9, 1e10}) {
      if (dtype == "bf16" && flops == 1e9) continue;
      times.push_back(TimeOn(known, "matmul", dtype, flops, 1e4));
    }
    for (const char* op : {"attention", "gelu", "add"}) {
      times.push_back(TimeOn(known, op, dtype, 1e6, 1e8));
    }
    for (int i = 0; i < 3; ++i) times.push_back(TimeOn(known, "mul", dtype, 1, 0.001));
  }
  times.push_back(TimeOn(known, "adamw", "f32", 1e6, 1e8));
  const Machine found = FitMachine(times, FindMachinePreset("cpu-threads").value());
  EXPECT_EQ(PrintMachine(found), PrintMachine(known));
}

TEST(CalibrateTest, FindsTheTierOfWhichTimesWereMade) {
  NetworkTier known = Known().tiers[0];
  known.latency = 2e-6;
  known.bandwidth = 1e10;
  known.efficiency = 0.8;
  known.points = {{1e4, 0.125}, {1e6, 1.0}, {1e8, 0.8}};
  std::vector<MessageTime> times = {{1, 2e-6}};
  for (const double bytes : {1e4, 1e6, 1e8}) {
    for (int i = 0; i < 2; ++i)
      times.push_back({bytes, MessageSeconds(known, static_cast<int64_t>(bytes))});
  }
  EXPECT_EQ(FitTier(times, Known().tiers[0]), known);
}

TEST(CalibrateTest, WithoutLongerMessagesTheBandwidthStays) {
  const NetworkTier like = Known().tiers[0];
  const NetworkTier tier = FitTier({{8, 3e-6}}, like);
  EXPECT_EQ(tier.latency, 3e-6);
  EXPECT_EQ(tier.bandwidth, like.bandwidth);
}

TEST(CalibrateTest, AMachineThatIsMeasuredPredicts) {
  CalibrationSetting setting = DefaultCalibration().value();
  setting.gpt2 = LoadModelPreset("gpt2-tiny").value();
  setting.llama = LoadModelPreset("llama-tiny").value();
  setting.seq_length = 64;
  setting.workers = 2;
  setting.rounds = 1;
  const absl::StatusOr<Machine> machine = Calibrate(setting);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_TRUE(CheckMachine(*machine).ok()) << CheckMachine(*machine);
  EXPECT_EQ(machine->cores, 2);
  ASSERT_EQ(machine->compute.size(), 2u);
  EXPECT_EQ(machine->compute[0].dtype, "bf16");
  EXPECT_EQ(machine->compute[1].dtype, "f32");
  ASSERT_EQ(machine->tiers.size(), 1u);
  EXPECT_FALSE(machine->tiers[0].points.empty());
  ParallelConfig two;
  two.world_size = two.tp = 2;
  two.micro_batch_size = two.global_batch_size = 4;
  two.seq_length = 64;
  auto steps = TrainingSteps::Create(setting.gpt2, two, *machine, setting.workers);
  ASSERT_TRUE(steps.ok()) << steps.status();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*steps)->Step().ok());
  EXPECT_GT((*steps)->profile().predicted_seconds, 0);
  EXPECT_EQ((*steps)->plan().machine, *machine);
}

}  // namespace
}  // namespace mgc
