#include "tools/benchmarks/instruction_cost.h"

#include "gtest/gtest.h"

namespace mgc {
namespace {

ParallelConfig Batch(int64_t micro_batches) {
  ParallelConfig config;
  config.micro_batch_size = 1;
  config.global_batch_size = micro_batches;
  return config;
}

TEST(InstructionCost, CountsWhatAllRanksRun) {
  const auto one = EmptySteps::Create(Batch(1), 1);
  const auto two = EmptySteps::Create(Batch(2), 1);
  const auto three = EmptySteps::Create(Batch(3), 1);
  ASSERT_TRUE(one.ok() && two.ok() && three.ok()) << one.status();
  const int64_t of_a_micro_batch = (*two)->instructions() - (*one)->instructions();
  EXPECT_GT(of_a_micro_batch, 50);
  EXPECT_EQ((*three)->instructions(), (*two)->instructions() + of_a_micro_batch);
  EXPECT_GT((*one)->instructions(), of_a_micro_batch) << "the update";

  ParallelConfig replicas = Batch(4);
  replicas.world_size = 2;
  const auto twice = EmptySteps::Create(replicas, 2);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_GT((*twice)->instructions(), 2 * (*two)->instructions()) << "and the sums of gradients";
}

TEST(InstructionCost, StepsRun) {
  ParallelConfig eight = Batch(4);
  eight.world_size = 8;
  eight.tp = eight.pp = 2;
  const auto steps = EmptySteps::Create(eight, 2);
  ASSERT_TRUE(steps.ok()) << steps.status();
  for (int i = 0; i < 3; ++i) {
    const auto ns = (*steps)->Step();
    ASSERT_TRUE(ns.ok()) << ns.status();
    EXPECT_GT(*ns, 0);
  }
}

}  // namespace
}  // namespace mgc
