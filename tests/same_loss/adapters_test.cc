// Adapters beside layers that are kept: such plans are proved, train as one rank does, and have
// nothing of what is not trained, no gradient, no states, no message.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "frontends/adapter.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/plan/plan_check.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;
// Of one tensor, and of its own; cut by columns, and by rows.
const std::vector<AdaptedLayers>& Adapted() {
  static const auto* const kAdapted = new std::vector<AdaptedLayers>{
      {"attention.q", "attention.k", "attention.v"}, {"attention.out"}, {"mlp.up"}, {"mlp.down"}};
  return *kAdapted;
}

bool IsAdapter(const std::string& name) {
  return absl::EndsWith(name, ".lora_a") || absl::EndsWith(name, ".lora_b");
}

// B begins at zero: then A has no gradient in the first step, and a plan that loses it looks right.
absl::StatusOr<Graph> WithMovedB(const Graph& model) {
  std::vector<std::string> lines = absl::StrSplit(PrintGraph(model), '\n');
  for (std::string& line : lines) {
    if (!absl::StartsWith(line, "  param ") || !absl::StrContains(line, ".lora_b: ")) continue;
    line = absl::StrReplaceAll(line, {{"init=\"zeros\"", "init=\"normal\", std=0.2"}});
  }
  return ParseGraph(absl::StrJoin(lines, "\n"), "moved");
}

absl::StatusOr<Plan> CompileAdapted(const TrainCase& c) {
  MGC_ASSIGN_OR_RETURN(CaseModel made, ModelOf(c));
  MGC_ASSIGN_OR_RETURN(ModelConfig config, LoadModelPreset(c.preset));
  config.vocab = c.vocab;
  ModelOptions options;
  options.adapter = AdapterOptions{4, 8, Adapted()};
  MGC_ASSIGN_OR_RETURN(const Graph model, BuildModel(config, c.parallel.micro_batch_size * c.dp,
                                                     made.options.parallel.seq_length, options));
  MGC_ASSIGN_OR_RETURN(made.model, WithMovedB(model));
  return Compile(made.model, made.dims, made.options);
}

struct NamedCase {
  std::string name;
  TrainCase one, many;
};

std::vector<NamedCase> Cases() {
  std::vector<NamedCase> cases;
  for (const bool gpt : {true, false}) {
    const auto of = gpt ? GptCase : LlamaCase;
    const std::string family = gpt ? "gpt2_" : "llama_";
    const TrainCase one = of(1, 1, 1);
    cases.push_back({family + "tp2", one, of(2, 1, 1)});
    cases.push_back({family + "tp2_sp_full", one,
                     WithRecompute(WithSequenceParallel(of(2, 1, 1)), RecomputeKind::kFull)});
    cases.push_back({family + "pp2", one, of(1, 2, 1)});
    cases.push_back(
        {family + "pp2_v2", one, WithSchedule(of(1, 2, 1), ScheduleKind::kInterleaved, 2)});
    cases.push_back({family + "dp2_zero1", one, WithZero(of(1, 1, 2))});
    cases.push_back({family + "dp2_zero3", one, WithZero(of(1, 1, 2), 3)});
    cases.push_back({family + "cp2", one, WithContextParallel(of(1, 1, 1), 2)});
    cases.push_back(
        {family + "pp2_tp2_sp_dp2_zero1", one, WithZero(WithSequenceParallel(of(2, 2, 2)))});
  }
  return cases;
}

const TrainResult& OneRank(const TrainCase& c) {
  static auto* const known = new std::map<std::string, TrainResult>();
  auto [it, fresh] = known->try_emplace(c.preset);
  if (fresh) {
    const absl::StatusOr<Plan> plan = CompileAdapted(c);
    EXPECT_TRUE(plan.ok()) << plan.status();
    absl::StatusOr<TrainResult> result = TrainPlan(*plan, c, kSteps);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) it->second = *std::move(result);
  }
  return it->second;
}

class AdaptersTest : public testing::TestWithParam<NamedCase> {};

TEST_P(AdaptersTest, AreProvedAndTrainAsOnOneRank) {
  const TrainCase& c = GetParam().many;
  const absl::StatusOr<Plan> plan = CompileAdapted(c);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const VerifyReport report = VerifyPlan(*plan);
  ASSERT_TRUE(report.findings.empty()) << report.findings.ToString();
  const TrainResult& one = OneRank(GetParam().one);
  const absl::StatusOr<TrainResult> many = TrainPlan(*plan, c, kSteps);
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(one.losses.size(), many->losses.size());
  EXPECT_NEAR(many->losses[0] / one.losses[0], 1, 1e-6);
  EXPECT_NEAR(many->grad_norms[0] / one.grad_norms[0], 1, 1e-6);
  for (int64_t i = 0; i < kSteps; ++i) EXPECT_NEAR(many->losses[i] / one.losses[i], 1, 1e-5) << i;
  size_t adapters = 0;
  for (const auto& [param, value] : one.parameters) {
    if (!IsAdapter(param)) {
      EXPECT_EQ(many->gradients.count(param), 0u) << param;
      EXPECT_EQ(value, many->parameters.at(param)) << param;
      continue;
    }
    ++adapters;
    ASSERT_EQ(many->gradients.count(param), 1u) << param;
    const std::vector<float>& gradient = one.gradients.at(param);
    EXPECT_GT(LargestDifference(gradient, std::vector<float>(gradient.size())), 1e-7) << param;
    EXPECT_LT(RelativeL2(gradient, many->gradients.at(param)), 1e-5) << param;
  }
  EXPECT_EQ(adapters, many->gradients.size());
  EXPECT_GT(adapters, 0u);
}

INSTANTIATE_TEST_SUITE_P(Plans, AdaptersTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// What is kept has nothing in the plan but its own tile.
TEST(AdaptersTest, WhatIsKeptHasNeitherStatesNorGradients) {
  const TrainCase c = WithZero(GptCase(2, 1, 2));
  const absl::StatusOr<Plan> whole = CompileCase(c);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const absl::StatusOr<Plan> adapted = CompileAdapted(c);
  ASSERT_TRUE(adapted.ok()) << adapted.status();
  int kept = 0;
  int trained = 0;
  for (const ParamBlock& block : adapted->blocks) {
    for (const ParamEntry& entry : block.entries) {
      EXPECT_EQ(IsTrained(entry.init), IsAdapter(entry.name)) << entry.name;
      EXPECT_EQ(entry.states.empty(), !IsAdapter(entry.name)) << entry.name;
      ++(IsAdapter(entry.name) ? trained : kept);
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(trained, 0);
  ASSERT_EQ(whole->classes.size(), adapted->classes.size());
  EXPECT_LT(adapted->classes[0].memory.peak, whole->classes[0].memory.peak);
}

// Whether what is damaged is refused, when it is read or by the proof.
bool IsRefused(const Plan& damaged) {
  return !CheckPlan(damaged).ok() || !VerifyPlan(damaged).findings.empty();
}

TEST(AdaptersTest, ProofMissesNoMessageAndNoFactor) {
  const absl::StatusOr<Plan> plan = CompileAdapted(WithZero(LlamaCase(2, 1, 2)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_FALSE(IsRefused(*plan));
  int messages = 0;
  int factors = 0;
  for (size_t s = 0; s < plan->segments.size(); ++s) {
    const Segment& segment = plan->segments[s];
    for (size_t i = 0; i < segment.instrs.size(); ++i) {
      const Instr& instr = segment.instrs[i];
      if (instr.op == nullptr) continue;
      Plan damaged = *plan;
      std::vector<Instr>& instrs = damaged.segments[s].instrs;
      if (instr.op->collective) {
        ++messages;
        instrs.erase(instrs.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (instr.op->name == "scale" && absl::StrContains(segment.name, "layer.")) {
        ++factors;
        instrs[i].attrs.Set("value", 2 * instr.attrs.Real("value"));
      } else {
        continue;
      }
      EXPECT_TRUE(IsRefused(damaged))
          << segment.name << ", instruction " << i << " " << instr.op->name;
    }
  }
  EXPECT_GT(messages, 8);
  EXPECT_GT(factors, 1);
}

}  // namespace
}  // namespace mgc
