// What ZeRO promises: memory by formulas, to the byte; how often is gathered and summed; and that
// gathering each time costs little where there is something to compute beside it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "graph/plan/instr_collective.h"
#include "graph/plan/plan.h"
#include "gtest/gtest.h"
#include "passes/plan/time/predict_step.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

PlanCase CaseOf(const char* model, int64_t dp, int64_t zero, int64_t group = 0) {
  PlanCase c;
  c.name = "zero";
  c.model = model;
  c.dp = dp;
  c.zero = zero;
  c.zero_group = group;
  c.micro_batches = 3;
  return c;
}

// Bytes of f32 in whole tensors and in pieces, each with its room.
struct Bytes {
  int64_t whole = 0;
  int64_t piece = 0;
};

std::map<int, Bytes> BytesByLayer(const Plan& plan) {
  std::map<int, Bytes> bytes;
  for (const HeldBlock& held : plan.classes[0].blocks) {
    for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
      Sharding whole = entry.sharding;
      whole.storage = AxisList();
      bytes[held.layer].whole += AlignUp(4 * LocalElements(entry.type, whole, plan.mesh));
      bytes[held.layer].piece += AlignUp(4 * LocalElements(entry.type, entry.sharding, plan.mesh));
    }
  }
  return bytes;
}

// Of what layers take in turn: as much as the largest of the even ones, and of the odd ones, need.
template <typename BytesOfLayer>
int64_t InTurn(const std::map<int, Bytes>& layers, BytesOfLayer bytes_of) {
  std::array<int64_t, 2> most = {0, 0};
  for (const auto& [layer, bytes] : layers) {
    int64_t& turn = most[static_cast<size_t>(layer & 1)];
    turn = std::max(turn, bytes_of(bytes));
  }
  return most[0] + most[1];
}

class ZeroMemoryTest : public testing::TestWithParam<int64_t> {};

TEST_P(ZeroMemoryTest, IsThatOfTheFormulas) {
  const int64_t level = GetParam();
  const Plan plan = CompilePlanCase(CaseOf("llama-tiny", 4, level));
  const std::map<int, Bytes> layers = BytesByLayer(plan);
  Bytes all;
  for (const auto& [layer, bytes] : layers) {
    all.whole += bytes.whole;
    all.piece += bytes.piece;
  }
  if (level > 0) {
    EXPECT_LT(all.piece, all.whole / 3);
  }
  const MemoryUse& memory = plan.classes[0].memory;
  EXPECT_EQ(memory.params, all.piece);
  EXPECT_EQ(memory.states, 2 * all.piece);
  const auto whole = [](const Bytes& bytes) { return bytes.whole; };
  const auto both = [](const Bytes& bytes) { return bytes.whole + bytes.piece; };
  const int64_t copies = level == 0 ? 0 : level == 3 ? InTurn(layers, whole) : all.whole;
  EXPECT_EQ(memory.copies, copies);
  if (level == 0) {
    EXPECT_EQ(memory.grads, all.whole);
  }
  if (level >= 2) {
    EXPECT_EQ(memory.grads, all.piece + InTurn(layers, both));
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ZeroMemoryTest, testing::Values(0, 1, 2, 3));

// Starts of a collective over dp in the calls of a layer.
int64_t Starts(const Plan& plan, const std::vector<Call>& calls, int layer, CollectiveKind kind) {
  int64_t starts = 0;
  for (const Call& call : calls) {
    if (call.layer != layer) continue;
    const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kStart) continue;
      const InstrCollective made = CollectiveOf(plan.mesh, plan.stages, segment, instr);
      starts += made.kind() == kind && absl::StartsWith(made.group, "dp") ? 1 : 0;
    }
  }
  return starts;
}

TEST(ZeroCountsTest, OneGatherForwardOneBackwardOneSumALayerAndMicroBatch) {
  for (const int64_t group : {int64_t{0}, int64_t{2}}) {
    const Plan plan = CompilePlanCase(CaseOf("llama-tiny", 4, 3, group));
    const Chunk& chunk = plan.classes[0].chunks[0];
    EXPECT_TRUE(chunk.prepare.empty());
    constexpr auto kGather = CollectiveKind::kAllGather;
    constexpr auto kScatter = CollectiveKind::kReduceScatter;
    for (int layer = kEmbeddingLayer; layer <= plan.model.num_layers(); ++layer) {
      EXPECT_EQ(Starts(plan, chunk.forward, layer, kGather), 1) << layer;
      EXPECT_EQ(Starts(plan, chunk.backward, layer, kGather), 1) << layer;
      EXPECT_EQ(Starts(plan, chunk.forward, layer, kScatter), 0) << layer;
      EXPECT_EQ(Starts(plan, chunk.backward, layer, kScatter), 1) << layer;
      // Copies of pieces are brought together once, in the last backward.
      const int64_t sums = Starts(plan, chunk.last_backward, layer, CollectiveKind::kAllReduce);
      EXPECT_EQ(sums, group == 0 ? 0 : 1) << layer;
    }
  }
}

TEST(ZeroCountsTest, KeptParametersAreGatheredOnceAStep) {
  const Plan plan = CompilePlanCase(CaseOf("llama-tiny", 4, 2));
  const Chunk& chunk = plan.classes[0].chunks[0];
  for (int layer = kEmbeddingLayer; layer <= plan.model.num_layers(); ++layer) {
    EXPECT_EQ(Starts(plan, chunk.prepare, layer, CollectiveKind::kAllGather), 1) << layer;
    EXPECT_EQ(Starts(plan, chunk.forward, layer, CollectiveKind::kAllGather), 0) << layer;
    EXPECT_EQ(Starts(plan, chunk.backward, layer, CollectiveKind::kReduceScatter), 1) << layer;
  }
}

// What a step of a model of 1.3 billion parameters waits for its collectives, on one machine of 8.
TEST(ZeroExposedTest, GatheringEachTimeStaysBesideCompute) {
  for (const bool bf16 : {false, true}) {
    PlanCase c = CaseOf("gpt3-1.3b", 8, 3);
    c.machine = "h100x8";
    c.micro_batch_size = 4;
    c.micro_batches = 1;
    c.bf16 = bf16;
    const Plan plan = CompilePlanCase(c);
    const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
    ASSERT_TRUE(step.ok()) << step.status();
    const CollectiveTime& time = step->collectives[0];
    std::cout << absl::StrFormat(
        "gpt3-1.3b dp8 zero3 %s: step %.3f ms, collectives %.3f, exposed "
        "%.3f\n",
        bf16 ? "bf16" : "f32", step->makespan_ns * 1e-6, time.all_ns * 1e-6,
        time.ExposedNs() * 1e-6);
    EXPECT_LT(static_cast<double>(time.ExposedNs()), 0.05 * static_cast<double>(step->makespan_ns));
  }
}

}  // namespace
}  // namespace mgc
