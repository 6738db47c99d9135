// Plans of models that are asked for their results, damaged: what steps leave for whoever runs them
// and for the next step.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "tests/verify/edit_plan.h"
#include "tests/verify/edit_segment.h"

namespace mgc {
namespace {

// llama-tiny on tp 2, pp 2, dp 2.
absl::StatusOr<Plan> CompileAsked(NextToken next_token, int64_t micro_batch_size,
                                  DType type = DType::kF32) {
  const ModelConfig config = *LoadModelPreset("llama-tiny");
  ModelOptions model;
  model.next_token = next_token;
  model.kept = 16;
  CompileOptions options;
  ParallelConfig& parallel = options.parallel;
  parallel.tp = parallel.pp = 2;
  parallel.world_size = 8;
  parallel.global_batch_size = 4;
  parallel.micro_batch_size = micro_batch_size;
  parallel.compute_type = type;
  parallel.seq_length = next_token == NextToken::kToken ? 1 : 8;
  options.machine = *FindMachinePreset("cpu-threads");
  const absl::StatusOr<Graph> graph =
      BuildModel(config, 2 * micro_batch_size, parallel.seq_length, model);
  if (!graph.ok()) return graph.status();
  return Compile(*graph, DimsOf(config), options);
}

Plan Asked(NextToken next_token) { return *CompileAsked(next_token, 2); }

Segment& Layer(Plan* plan) { return SegmentOf(plan, "layer.forward"); }
Instr& Write(Plan* plan, int nth) {
  Segment& segment = Layer(plan);
  return segment.instrs[InstrOf(segment, "write_rows", nth)];
}
Instr& Attention(Plan* plan) {
  Segment& segment = Layer(plan);
  return segment.instrs[InstrOf(segment, "segment_attention")];
}
NamedTensor& Logits(Plan* plan) { return plan->classes.back().results[0]; }
std::vector<NamedTensor>& Kept(Plan* plan) {
  for (ParamBlock& block : plan->blocks) {
    if (!block.kept.empty()) return block.kept;
  }
  return plan->blocks[0].kept;
}

const PlanDamage kDamages[] = {
    {"ResultElsewhere", "placement_v10", [](Plan* plan) { Logits(plan).address += 64; }},
    {"ResultMissing", "meaning_v4", [](Plan* plan) { plan->classes.back().results.clear(); }},
    {"ResultRenamed", "meaning_v4", [](Plan* plan) { Logits(plan).name = "lo"; }},
    {"ResultWhole", "placement_v10",
     [](Plan* plan) { Logits(plan).sharding = Sharding::Whole(2); }},
    {"ResultOfTheOtherClass", "placement_v10",
     [](Plan* plan) { plan->classes[0].results = plan->classes[1].results; }},
    {"KeptElsewhere", "placement_v10", [](Plan* plan) { Kept(plan)[0].address += 64; }},
    {"KeptMissing", "memory_v6", [](Plan* plan) { Kept(plan).pop_back(); }},
    {"KeptExchanged", "meaning_v6",
     [](Plan* plan) { std::swap(Kept(plan)[0].address, Kept(plan)[1].address); }},
    {"KeptRenamed", "meaning_v6", [](Plan* plan) { Kept(plan)[0].name = "layers.*.other"; }},
    {"KeysWrittenAsValues", "meaning_v6",
     [](Plan* plan) { std::swap(Write(plan, 0).inputs[1], Write(plan, 1).inputs[1]); }},
    {"KeysReadBeforeTheyAreWritten", "memory_v3",
     [](Plan* plan) { Attention(plan).inputs[1] = Write(plan, 0).inputs[0]; }},
    {"KeysOfTheLayerBefore", "order_v1",
     [](Plan* plan) {
       std::vector<Call>& calls = plan->classes[0].chunks[0].forward;
       calls[2].bindings = calls[1].bindings;
     }},
    {"NothingWritten", "placement_v10",
     [](Plan* plan) {
       Segment& segment = Layer(plan);
       Skip(&segment, InstrOf(segment, "write_rows"));
     }},
    {"WrittenBesideTheState", "memory_v3",
     [](Plan* plan) {
       Segment& segment = Layer(plan);
       segment.slots[static_cast<size_t>(Write(plan, 0).outputs[0])].offset += 64;
     }},
    {"SeveralMicroBatches", "plan_c11", [](Plan* plan) { plan->num_micro_batches = 2; }},
    {"AnEvaluation", "plan_c11",
     [](Plan* plan) { plan->classes[0].eval.compute = plan->classes[0].train.compute; }},
};

class AskedDamageTest : public testing::TestWithParam<PlanDamage> {};

TEST_P(AskedDamageTest, IsRefused) {
  Plan plan = Asked(NextToken::kToken);
  GetParam().apply(&plan);
  const std::string found = FoundIn(plan);
  EXPECT_NE(found, "");
  EXPECT_NE(found.find(GetParam().label), std::string::npos) << found;
}

INSTANTIATE_TEST_SUITE_P(All, AskedDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

TEST(AskedProofTest, AcceptsWhatIsCompiled) {
  for (const NextToken next : {NextToken::kWhole, NextToken::kPrompt, NextToken::kToken}) {
    EXPECT_EQ(FoundIn(Asked(next)), "");
  }
}

// The second would write over what the first has left.
TEST(AskedProofTest, StepsHaveOneMicroBatch) {
  const std::string refused(CompileAsked(NextToken::kWhole, 1).status().message());
  EXPECT_NE(refused.find("one micro-batch, not 2 [differentiate_c9]"), std::string::npos)
      << refused;
}

TEST(AskedProofTest, AcceptsWhatIsHeldInBf16) {
  Plan plan = *CompileAsked(NextToken::kToken, 2, DType::kBF16);
  EXPECT_EQ(FoundIn(plan), "");
  EXPECT_EQ(Kept(&plan)[0].type.dtype, DType::kBF16);
}

// What is read in f32 may not be held rounded.
TEST(AskedProofTest, RefusesAWeightThatIsWidened) {
  Plan plan = *CompileAsked(NextToken::kToken, 2, DType::kBF16);
  Segment& layer = Layer(&plan);
  const Edit edit = {plan, layer};
  const size_t norm = InstrOf(layer, "rms_norm");
  const int weight = layer.instrs[norm].inputs[1];
  layer.instrs[norm + 1].inputs[1] = edit.Cast(norm, weight, DType::kF32);
  Slot& held = edit.SlotAt(weight);
  held.type.dtype = DType::kBF16;
  held.bytes /= 2;
  for (ParamBlock& block : plan.blocks) {
    for (ParamEntry& entry : block.entries) {
      if (entry.name == "layers.*.norm1") entry.type.dtype = DType::kBF16;
    }
  }
  for (PlanClass& rank_class : plan.classes) rank_class.memory.peak += int64_t{1} << 24;
  const std::string found = FoundIn(plan);
  EXPECT_NE(found.find("placement_v14"), std::string::npos) << found;
}

TEST(AskedProofTest, RefusesKeysThatAreWidened) {
  Plan plan = *CompileAsked(NextToken::kToken, 2, DType::kBF16);
  Segment& layer = Layer(&plan);
  const Edit edit = {plan, layer};
  const size_t at = InstrOf(layer, "segment_attention");
  const int wide = edit.Cast(at, layer.instrs[at].inputs[1], DType::kF32);
  const int again = edit.Cast(at + 1, wide, DType::kBF16);
  layer.instrs[at + 2].inputs[1] = again;
  for (PlanClass& rank_class : plan.classes) rank_class.memory.peak += int64_t{1} << 24;
  const std::string found = FoundIn(plan);
  EXPECT_NE(found.find("placement_v14"), std::string::npos) << found;
}

// A step that trains leaves no tensors.
TEST(AskedProofTest, RefusesTensorsLeftByAPlanThatTrains) {
  Plan plan = CompileTiny("fp16_tp2_pp2_dp2");
  plan.classes.back().results = {
      {"logits", {DType::kF32, {{2, "batch", 1}}}, Sharding::Whole(1), 0}};
  EXPECT_NE(FoundIn(plan).find("placement_v10"), std::string::npos) << FoundIn(plan);
}

}  // namespace
}  // namespace mgc
