// Every family's tiny preset under each kind of parallelism: the plan is proved, cuts what it is
// asked to, and trains as one rank does, dropout on.

#include "frontends/families.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "frontends/model_config.h"
#include "graph/plan/plan.h"
#include "graph/types/attrs.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 3;

// The tiny presets of families that tests/plan_corpus does not pin.
std::vector<std::string> TinyPresets() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) {
    if (!absl::EndsWith(preset.name, "-tiny")) continue;
    if (preset.name == "gpt2-tiny" || preset.name == "llama-tiny") continue;
    names.emplace_back(preset.name);
  }
  return names;
}

TrainCase CaseOf(const std::string& preset, const std::string& plan) {
  const std::map<std::string, TrainCase> plans = {
      {"one", GptCase(1, 1, 1)},
      {"tp2", GptCase(2, 1, 1)},
      {"tp2_sp", WithSequenceParallel(GptCase(2, 1, 1))},
      {"tp4_sp", WithSequenceParallel(GptCase(4, 1, 1))},
      {"pp2", GptCase(1, 2, 1)},
      {"cp2", WithContextParallel(GptCase(1, 1, 1), 2)},
      {"dp2_zero1", WithZero(GptCase(1, 1, 2))},
      {"all",
       WithRecompute(WithZero(WithSequenceParallel(GptCase(2, 2, 2))), RecomputeKind::kSelective)},
  };
  TrainCase c = plans.at(plan);
  c.preset = preset;
  return c;
}

const TrainResult& OneRank(const std::string& preset) {
  static std::map<std::string, TrainResult>* const known = new std::map<std::string, TrainResult>();
  auto [it, fresh] = known->try_emplace(preset);
  if (fresh) {
    absl::StatusOr<TrainResult> result = TrainCaseFor(CaseOf(preset, "one"), kSteps);
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) it->second = *std::move(result);
  }
  return it->second;
}

class FamilyTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(FamilyTest, IsProvedAndTrainsAsOneRank) {
  const auto& [preset, plan_name] = GetParam();
  const TrainCase c = CaseOf(preset, plan_name);
  const absl::StatusOr<Plan> plan = CompileCase(c);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const VerifyReport report = VerifyPlan(*plan);
  EXPECT_TRUE(report.findings.empty()) << report.findings.ToString();
  const TrainResult& one = OneRank(preset);
  absl::StatusOr<TrainResult> many = TrainPlan(*plan, c, kSteps);
  ASSERT_TRUE(many.ok()) << many.status();
  ASSERT_EQ(one.losses.size(), many->losses.size());
  if (plan_name == "pp2") {
    EXPECT_EQ(one.losses, many->losses) << "a cut changes no bit";
  }
  EXPECT_NEAR(many->losses[0] / one.losses[0], 1, 1e-6);
  EXPECT_NEAR(many->grad_norms[0] / one.grad_norms[0], 1, 1e-6);
  for (int64_t i = 0; i < kSteps; ++i) EXPECT_NEAR(many->losses[i] / one.losses[i], 1, 1e-5) << i;
  for (const auto& [name, gradient] : one.gradients) {
    // What a key's bias adds to all scores of a query changes nothing; what RoPE leaves is small.
    if (absl::EndsWith(name, "attention.k.bias")) {
      EXPECT_LT(LargestDifference(gradient, many->gradients[name]), 1e-6) << name;
    } else {
      EXPECT_LT(RelativeL2(gradient, many->gradients[name]), 1e-5) << name;
    }
  }
  EXPECT_EQ(many->planned_peaks, many->measured_peaks);
}

INSTANTIATE_TEST_SUITE_P(Models, FamilyTest,
                         testing::Combine(testing::ValuesIn(TinyPresets()),
                                          testing::Values("tp2", "tp2_sp", "tp4_sp", "pp2", "cp2",
                                                          "dp2_zero1", "all")),
                         [](const auto& info) {
                           return absl::StrReplaceAll(std::get<0>(info.param), {{"-", "_"}}) + "_" +
                                  std::get<1>(info.param);
                         });

// An attribute that all of a plan's instructions of some ops have otherwise than the model, or have
// and the model has not.
struct OtherAttr {
  std::string preset;
  std::vector<std::string> ops;
  std::string attr;
  AttrValue value;
  int least = 2;  // instructions: forward and backward
};

class FamilyProofTest : public testing::TestWithParam<OtherAttr> {};

// The proof runs sizes at which every key is inside of a window, and a head is smaller than what
// RoPE turns; what an attribute does is told apart all the same.
TEST_P(FamilyProofTest, RefusesAnotherAttribute) {
  const OtherAttr& other = GetParam();
  absl::StatusOr<Plan> plan = CompileCase(CaseOf(other.preset, "tp2"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  int changed = 0;
  for (Segment& segment : plan->segments) {
    for (Instr& instr : segment.instrs) {
      if (instr.op == nullptr) continue;
      if (std::count(other.ops.begin(), other.ops.end(), instr.op->name) == 0) continue;
      const bool optional = other.attr == "causal" || other.attr == "window";
      if (!optional && instr.attrs.Find(other.attr) == nullptr) continue;
      instr.attrs.Set(other.attr, other.value);
      ++changed;
    }
  }
  EXPECT_GE(changed, other.least);
  EXPECT_FALSE(VerifyPlan(*plan).findings.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Attributes, FamilyProofTest,
    testing::Values(
        OtherAttr{"mistral-tiny", {"attention", "attention_grad"}, "window", int64_t{15}},
        OtherAttr{"gemma2-tiny", {"attention", "attention_grad"}, "window", int64_t{17}},
        OtherAttr{"gemma2-tiny", {"attention", "attention_grad"}, "cap", 49.0},
        OtherAttr{"llama-tiny", {"attention", "attention_grad"}, "causal", int64_t{0}},
        OtherAttr{"llama-tiny", {"attention_grad"}, "causal", int64_t{0}, 1},
        OtherAttr{"llama-tiny", {"attention", "attention_grad"}, "window", int64_t{32}},
        OtherAttr{"vit-tiny", {"attention", "attention_grad"}, "causal", int64_t{1}},
        OtherAttr{"vit-tiny", {"attention"}, "causal", int64_t{1}, 1},
        OtherAttr{
            "bert-tiny", {"segment_attention", "segment_attention_grad"}, "causal", int64_t{1}},
        OtherAttr{"bert-tiny", {"segment_attention_grad"}, "causal", int64_t{1}, 1},
        OtherAttr{"bert-tiny", {"counted"}, "ignore", int64_t{-99}, 1},
        OtherAttr{"gemma2-tiny", {"soft_cap", "soft_cap_grad"}, "cap", 29.0},
        OtherAttr{"gemma-tiny", {"scale"}, "value", 7.0},
        OtherAttr{"phi3-tiny", {"rope"}, "dims", int64_t{4}},
        OtherAttr{"gpt-neox-tiny", {"rope"}, "dims", int64_t{4}}),
    [](const testing::TestParamInfo<OtherAttr>& info) {
      return absl::StrReplaceAll(info.param.preset, {{"-", "_"}}) + "_" +
             absl::StrJoin(info.param.ops, "_") + "_" + info.param.attr;
    });

TEST(FamilyPresetTest, EveryFamilyHasATinyOne) {
  for (const FamilyTraits& traits : ModelFamilies()) {
    bool found = false;
    for (const ModelPreset& preset : ModelPresets()) {
      found |= absl::EndsWith(preset.name, "-tiny") &&
               LoadModelPreset(preset.name)->family == traits.family;
    }
    EXPECT_TRUE(found) << traits.model_type;
  }
}

}  // namespace
}  // namespace mgc
