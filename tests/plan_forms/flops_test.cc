// What the ranks of a plan compute in products, against the closed formula by which Megatron-LM
// counts a model's flops (num_floating_point_operations; causal attention counted half).

#include <cstdint>
#include <string>
#include <vector>

#include "frontends/model_config.h"
#include "gtest/gtest.h"
#include "passes/plan/time/cost.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

bool IsProduct(const Instr& instr) {
  if (instr.op == nullptr) return false;
  const std::string& name = instr.op->name;
  return name == "matmul" || name == "matmul_accumulate" || name == "matmul_bias" ||
         name == "attention" || name == "attention_grad";
}

// Of one rank of a class and one micro-batch.
double FlopsOfMicroBatch(const Plan& plan, const PlanClass& rank_class) {
  double flops = 0;
  for (const Chunk& chunk : rank_class.chunks) {
    for (const std::vector<Call>* calls : {&chunk.forward, &chunk.backward}) {
      for (const Call& call : *calls) {
        const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
        for (const Instr& instr : segment.instrs) {
          if (IsProduct(instr)) flops += FlopsOf(plan.mesh, segment, instr);
        }
      }
    }
  }
  return flops;
}

// Of all ranks and one sample.
double FlopsOfSample(const Plan& plan) {
  double flops = 0;
  for (const PlanClass& rank_class : plan.classes) {
    flops +=
        FlopsOfMicroBatch(plan, rank_class) *
        static_cast<double>(plan.mesh.world_size() / static_cast<int64_t>(plan.classes.size()));
  }
  return flops * static_cast<double>(plan.num_micro_batches) /
         static_cast<double>(plan.global_batch_size);
}

// Megatron-LM's formula takes s^2 / 2 for the s (s + 1) / 2 pairs of query and key that are
// visible, and 8 flops for each and each place of the depth in the backward pass, where a kernel
// that keeps no scores computes them once more: 10.
double Formula(const ModelConfig& config, double s, double mlp_products) {
  const double h = static_cast<double>(config.hidden);
  const double q = static_cast<double>(config.heads * config.head_dim);
  const double k = static_cast<double>(config.kv_heads * config.head_dim);
  const double layers = static_cast<double>(config.layers);
  const double mlp = mlp_products * h * static_cast<double>(config.ffn);
  const double weights =
      layers * (mlp + 2 * h * q + 2 * h * k) + h * static_cast<double>(config.vocab);
  const double megatron = 6 * s * weights + 6 * q * layers * s * s;
  const double diagonal = 6 * q * layers * s;
  const double scores_again = 2 * q * layers * s * (s + 1) / 2;
  return megatron + diagonal + scores_again;
}

void ExpectFormula(const PlanCase& c, double mlp_products) {
  const auto config = LoadModelPreset(c.model);
  ASSERT_TRUE(config.ok()) << config.status();
  const Plan plan = CompilePlanCase(c);
  const double expected = Formula(*config, static_cast<double>(plan.seq_length), mlp_products);
  EXPECT_NEAR(FlopsOfSample(plan) / expected, 1, 1e-12) << c.name;
}

TEST(FlopsTest, AreThoseOfTheModelHoweverItIsSpread) {
  constexpr auto kOneFOneB = ScheduleKind::kOneFOneB;
  constexpr auto kNone = RecomputeKind::kNone;
  // name, model, tp, pp, vp, dp, micro-batches, seq, sp, schedule, recompute, zero
  ExpectFormula({"gpt2", "gpt2-tiny", 1, 1, 1, 1, 1, 16, false, kOneFOneB, kNone, 0}, 2);
  ExpectFormula({"gpt2 tp2 dp2", "gpt2-tiny", 2, 1, 1, 2, 3, 16, true, kOneFOneB, kNone, 1}, 2);
  ExpectFormula({"llama pp2", "llama-tiny", 2, 2, 1, 2, 4, 16, false, kOneFOneB, kNone, 0}, 3);
  ExpectFormula({"gpt3", "gpt3-175b", 8, 8, 1, 2, 16, 0, true, kOneFOneB, kNone, 0}, 2);
  ExpectFormula({"llama3", "llama3-405b", 8, 16, 1, 2, 16, 0, true, kOneFOneB, kNone, 0}, 3);
}

}  // namespace
}  // namespace mgc
