#include "tests/plan_forms/corpus.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/types/machine.h"
#include "passes/compile.h"

namespace mgc {
namespace {

PlanOptions FlagsOf(const PlanCase& c) {
  return {{"--tp", absl::StrCat(c.tp)},
          {"--pp", absl::StrCat(c.pp)},
          {"--schedule", std::string(ToString(c.schedule))}};
}

PlanCase SteppedBy(const char* optimizer, PlanCase c) {
  c.optimizer = optimizer;
  return c;
}

}  // namespace

std::vector<PlanCase> TinyPlanCases() {
  constexpr auto kGpipe = ScheduleKind::kGpipe;
  constexpr auto kOneFOneB = ScheduleKind::kOneFOneB;
  constexpr auto kInterleaved = ScheduleKind::kInterleaved;
  constexpr auto kNone = RecomputeKind::kNone;
  constexpr auto kSelective = RecomputeKind::kSelective;
  constexpr auto kFull = RecomputeKind::kFull;
  // name, model, tp, pp, vp, dp, micro-batches, seq, sp, schedule, recompute, zero, bf16
  return {
      {"one_rank", "gpt2-tiny", 1, 1, 1, 1, 1, 16, false, kOneFOneB, kNone, 0},
      {"tp2", "gpt2-tiny", 2, 1, 1, 1, 2, 16, false, kOneFOneB, kNone, 0},
      {"tp4_sp", "llama-tiny", 4, 1, 1, 1, 2, 16, true, kOneFOneB, kNone, 0},
      {"tp8_shared_kv", "llama-tiny", 8, 1, 1, 1, 1, 16, false, kOneFOneB, kNone, 0},
      {"dp2_zero", "gpt2-tiny", 1, 1, 1, 2, 3, 16, false, kOneFOneB, kNone, 1},
      {"pp2", "gpt2-tiny", 1, 2, 1, 1, 7, 16, false, kOneFOneB, kNone, 0},
      {"pp4_gpipe", "llama-tiny", 1, 4, 1, 1, 9, 16, false, kGpipe, kNone, 0},
      {"pp2_full", "gpt2-tiny", 1, 2, 1, 1, 20, 16, false, kOneFOneB, kFull, 0},
      {"pp2_vp2", "llama-tiny", 1, 2, 2, 1, 12, 16, false, kInterleaved, kNone, 0},
      {"pp3_vp2_ends", "gpt2-tiny", 1, 3, 2, 1, 40, 16, false, kInterleaved, kNone, 0},
      {"tp2_pp2_dp2", "gpt2-tiny", 2, 2, 1, 2, 16, 16, true, kOneFOneB, kSelective, 1},
      {"bf16", "gpt2-tiny", 1, 1, 1, 1, 2, 16, false, kOneFOneB, kNone, 0, true},
      {"bf16_tp2_pp2_dp2", "llama-tiny", 2, 2, 1, 2, 8, 16, true, kOneFOneB, kFull, 1, true},
      {"fp16", "gpt2-tiny", 1, 1, 1, 1, 2, 16, false, kOneFOneB, kNone, 0, false, "a100x8", false,
       true},
      {"fp16_tp2_pp2_dp2", "llama-tiny", 2, 2, 1, 2, 8, 16, true, kOneFOneB, kFull, 1, false,
       "a100x8", false, true},
      {"dp2_zero2", "gpt2-tiny", 1, 1, 1, 2, 3, 16, false, kOneFOneB, kNone, 2},
      {"dp2_zero3", "llama-tiny", 1, 1, 1, 2, 3, 16, false, kOneFOneB, kNone, 3},
      {"bf16_tp2_pp2_dp4_zero3", "gpt2-tiny", 2, 2, 1, 4, 8, 16, true, kOneFOneB, kFull, 3, true,
       "a100x8", true, false, 2},
      {"fp16_dp2_zero3", "llama-tiny", 1, 1, 1, 2, 3, 16, false, kOneFOneB, kNone, 3, false,
       "a100x8", false, true},
      {"tp2_pieces", "gpt2-tiny", 2, 1, 1, 1, 2, 16, false, kOneFOneB, kNone, 0, false, "a100x8",
       false, false, 0, 2},
      {"bf16_tp2_pp2_dp2_pieces", "llama-tiny", 2, 2, 1, 2, 8, 16, true, kOneFOneB, kFull, 1, true,
       "a100x8", false, false, 0, 4},
      SteppedBy("muon", {"fp16_muon_tp2_dp2", "llama-tiny", 2, 1, 1, 2, 3, 16, false, kOneFOneB,
                         kNone, 1, false, "a100x8", false, true}),
      {"tp2_pp2_vp2_dp2", "llama-tiny", 2, 2, 2, 2, 30, 16, true, kInterleaved, kFull, 1},
  };
}

std::vector<PlanCase> LargePlanCases() {
  constexpr auto kOneFOneB = ScheduleKind::kOneFOneB;
  constexpr auto kInterleaved = ScheduleKind::kInterleaved;
  constexpr auto kNone = RecomputeKind::kNone;
  return {
      {"gpt3_175b", "gpt3-175b", 8, 8, 1, 16, 96, 0, true, kOneFOneB, kNone, 0},
      {"llama3_405b", "llama3-405b", 8, 16, 1, 128, 16, 0, true, kOneFOneB, kNone, 0},
      {"llama3_405b_v8", "llama3-405b", 8, 16, 8, 128, 16, 0, true, kInterleaved, kNone, 0},
      {"megatron_1t", "megatron-1t", 8, 64, 1, 6, 512, 0, true, kOneFOneB, kNone, 0},
  };
}

Plan CompilePlanCase(const PlanCase& c, RunOptions run) {
  const absl::StatusOr<ModelConfig> config = LoadModelPreset(c.model);
  MGC_CHECK(config.ok()) << config.status().ToString();
  CompileOptions options;
  ParallelConfig& parallel = options.parallel;
  parallel.world_size = c.tp * c.pp * c.dp;
  parallel.tp = c.tp;
  parallel.pp = c.pp;
  parallel.vp = c.vp;
  parallel.sequence_parallel = c.sequence_parallel;
  parallel.micro_batch_size = c.micro_batch_size;
  parallel.global_batch_size = c.dp * c.micro_batches * c.micro_batch_size;
  parallel.seq_length = c.seq_length == 0 ? config->seq_length : c.seq_length;
  parallel.schedule = c.schedule;
  parallel.recompute = c.recompute;
  parallel.zero = c.zero;
  parallel.zero_group = c.zero_group;
  parallel.split_products = c.split_products;
  parallel.optimizer.name = c.optimizer;
  if (c.bf16) parallel.compute_type = DType::kBF16;
  if (c.fp16) parallel.compute_type = DType::kF16;
  if (c.bf16_sums) parallel.gradient_sums = DType::kBF16;
  options.machine = *FindMachinePreset(c.machine);
  options.flags = FlagsOf(c);
  options.run = std::move(run);
  const absl::StatusOr<Graph> logical =
      BuildModel(*config, c.dp * c.micro_batch_size, parallel.seq_length);
  MGC_CHECK(logical.ok()) << logical.status().ToString();
  absl::StatusOr<Plan> plan = Compile(*logical, DimsOf(*config), options);
  MGC_CHECK(plan.ok()) << c.name << ": " << plan.status().ToString();
  return *std::move(plan);
}

}  // namespace mgc
