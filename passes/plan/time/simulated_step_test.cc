#include "passes/plan/time/simulated_step.h"

#include "gtest/gtest.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

SimulatedStep TwoStages() {
  SimulatedStep step;
  step.makespan_ns = 500;
  step.busy_ns = {300, 400};
  step.collectives.resize(2);
  step.collectives[0].all_ns = 60;
  step.collectives[1].all_ns = 40;
  return step;
}

TEST(SimulatedStepTest, RanksWithDevicesOfTheirOwnWaitForEachOther) {
  const Mesh mesh = *Mesh::Create({{"pp", 2}, {"tp", 4}});
  EXPECT_EQ(StepNs(TwoStages(), mesh, *FindMachinePreset("cpu-threads")), 500);
}

TEST(SimulatedStepTest, OnSharedCoresTheWorkOfAllRanksCounts) {
  const Mesh mesh = *Mesh::Create({{"pp", 2}, {"tp", 4}});
  Machine machine = *FindMachinePreset("cpu-threads");
  machine.cores = 2;
  EXPECT_EQ(StepNs(TwoStages(), mesh, machine), 4 * (360 + 440) / 2);
  machine.cores = 16;
  EXPECT_EQ(StepNs(TwoStages(), mesh, machine), 4 * (360 + 440) / 16);
  SimulatedStep centuries = TwoStages();
  centuries.busy_ns = {kMaxNs, kMaxNs};
  EXPECT_EQ(StepNs(centuries, mesh, machine), kMaxNs / 2);
  machine.cores = 1;
  EXPECT_EQ(StepNs(centuries, mesh, machine), kMaxNs);
}

}  // namespace
}  // namespace mgc
