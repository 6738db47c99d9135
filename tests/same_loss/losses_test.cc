// Every loss of frontends/losses.h, and attention within segments, under each kind of parallelism:
// the plan is proved, and losses and gradients are those of one rank.

#include "frontends/losses.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/builder.h"
#include "frontends/layers.h"
#include "graph/base/status.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/config/parallel_config.h"
#include "tests/same_loss/train_plan.h"
#include "tests/same_loss/train_samples.h"

namespace mgc {
namespace {

constexpr int64_t kSteps = 2;
constexpr uint64_t kSeed = 77;
constexpr int64_t kSeqLength = 8;
constexpr int64_t kIgnored = -100;

Tensor Head(ModelBuilder& b, Tensor x) {
  return Logits(b, x, b.Param("", "vocab embed", NormalInit(0.2)));
}

Tensor BinaryOfLabels(ModelBuilder& b, Tensor logits) {
  return SumOverLast(
      b, BinaryCrossEntropy(b, logits, b.Data("labels", "batch seq vocab", DType::kF32)));
}

Tensor SquaresOf(ModelBuilder& b, Tensor x) {
  return SumOverLast(b, SquaredError(b, x, b.Data("wanted", "batch seq embed", DType::kF32)));
}

void CrossEntropyWith(ModelBuilder& b, Tensor x, double smoothing, bool ignores) {
  CrossEntropyOptions options;
  options.smoothing = smoothing;
  if (ignores) options.ignore = kIgnored;
  CrossEntropyLoss(b, Head(b, x), options);
}

// Counts what `losses` are of, by the data input `weights`.
void OnlyTerm(ModelBuilder& b, Tensor losses) {
  LossTerm(b, kLossReport, losses, b.Weights());
  ReportCount(b, b.Weights());
}

void ThreeTerms(ModelBuilder& b, Tensor x) {
  const Tensor logits = Head(b, x);
  LossTerm(b, kLossReport, CrossEntropy(b, logits, b.Targets(), 0.1), b.Weights());
  LossTerm(b, "binary", BinaryOfLabels(b, logits), b.Weights(), 0.25);
  LossTerm(b, "squares", SquaresOf(b, x), b.Weights(), 3.0);
  ReportCount(b, b.Weights());
}

struct Losses {
  // Adds the losses of the last layer's x [batch, seq, embed].
  std::function<void(ModelBuilder&, Tensor x)> add;
  bool segments = false;  // attention is within those of the data input `segments`
  bool causal = true;
};

const std::map<std::string, Losses>& AllLosses() {
  static const auto* const kAll = new std::map<std::string, Losses>{
      {"smoothed", {[](ModelBuilder& b, Tensor x) { CrossEntropyWith(b, x, 0.1, false); }}},
      {"ignored", {[](ModelBuilder& b, Tensor x) { CrossEntropyWith(b, x, 0, true); }}},
      {"both", {[](ModelBuilder& b, Tensor x) { CrossEntropyWith(b, x, 0.3, true); }}},
      {"binary", {[](ModelBuilder& b, Tensor x) { OnlyTerm(b, BinaryOfLabels(b, Head(b, x))); }}},
      {"squares", {[](ModelBuilder& b, Tensor x) { OnlyTerm(b, SquaresOf(b, x)); }}},
      {"three_terms", {ThreeTerms}},
      {"segments", {[](ModelBuilder& b, Tensor x) { CrossEntropyWith(b, x, 0, false); }, true}},
      {"segments_all_keys",
       {[](ModelBuilder& b, Tensor x) { CrossEntropyWith(b, x, 0, true); }, true, false}},
  };
  return *kAll;
}

// Two layers; a vocabulary that no axis divides.
absl::StatusOr<Graph> ModelWith(const Losses& losses, int64_t batch) {
  ModelBuilder b("losses", {{batch, "batch"},
                            {kSeqLength, "seq"},
                            {16, "embed"},
                            {4, "heads"},
                            {2, "kv_heads"},
                            {4, "head_dim"},
                            {32, "mlp"},
                            {13, "vocab"}});
  Tensor x;
  {
    ModelBuilder::Scope embedding = b.EmbeddingLayer();
    x = Embedding(b, "word", b.Tokens(), "vocab embed", 0.5);
  }
  AttentionOptions attention;
  attention.std = attention.out_std = 0.3;
  attention.causal = losses.causal;
  if (losses.segments) attention.segments = b.Data("segments", "batch seq", DType::kI64);
  MlpOptions mlp;
  mlp.std = mlp.out_std = 0.3;
  for (int i = 0; i < 2; ++i) {
    ModelBuilder::Scope layer = b.Layer(i);
    x = Attention(b, "attention", RmsNorm(b, "norm1", x), x, attention);
    x = Mlp(b, "mlp", RmsNorm(b, "norm2", x), x, mlp);
  }
  ModelBuilder::Scope head = b.Head();
  losses.add(b, RmsNorm(b, "norm", x));
  return std::move(b).Finish();
}

ParallelConfig LayoutOf(const std::string& name) {
  ParallelConfig base;
  base.micro_batch_size = 2;
  base.global_batch_size = 8;
  base.seq_length = kSeqLength;
  std::map<std::string, ParallelConfig> layouts;
  const auto add = [&](const char* layout, int64_t tp, int64_t cp, int64_t pp,
                       int64_t dp) -> ParallelConfig& {
    ParallelConfig& made = layouts.try_emplace(layout, base).first->second;
    made.tp = tp;
    made.cp = cp;
    made.pp = pp;
    made.world_size = tp * cp * pp * dp;
    return made;
  };
  add("tp2", 2, 1, 1, 1);
  add("tp4_sp", 4, 1, 1, 1).sequence_parallel = true;
  add("cp2", 1, 2, 1, 1);
  add("cp4", 1, 4, 1, 1);
  add("pp2", 1, 1, 2, 1);
  add("dp2_zero1", 1, 1, 1, 2).zero = 1;
  ParallelConfig& all = add("all", 2, 2, 2, 2);
  all.sequence_parallel = true;
  all.zero = 1;
  all.recompute = RecomputeKind::kSelective;
  return layouts.at(name);
}

absl::StatusOr<Plan> CompileWith(const Losses& losses, const ParallelConfig& parallel) {
  MGC_ASSIGN_OR_RETURN(const Graph model,
                       ModelWith(losses, parallel.micro_batch_size * DataParallelSize(parallel)));
  CompileOptions options;
  options.parallel = parallel;
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("cpu-threads"));
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(model, ModelDims(), options));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  return plan;
}

class LossesOfPlansTest : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(LossesOfPlansTest, AreThoseOfOneRank) {
  const auto& [name, layout] = GetParam();
  const Losses& losses = AllLosses().at(name);
  const ParallelConfig parallel = LayoutOf(layout);
  const absl::StatusOr<Plan> plan = CompileWith(losses, parallel);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<Plan> one = CompileWith(losses, OnOneRank(parallel));
  ASSERT_TRUE(one.ok()) << one.status();
  const absl::StatusOr<TrainResult> expected = TrainOnSamples(*one, kSteps, kSeed);
  const absl::StatusOr<TrainResult> found = TrainOnSamples(*plan, kSteps, kSeed);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GT(expected->grad_norms[0], 0.01);
  EXPECT_EQ(Difference(*expected, *found), "");
  EXPECT_EQ(found->planned_peaks, found->measured_peaks);
}

std::vector<std::string> NamesOfLosses() {
  std::vector<std::string> names;
  for (const auto& [name, losses] : AllLosses()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, LossesOfPlansTest,
                         testing::Combine(testing::ValuesIn(NamesOfLosses()),
                                          testing::Values("tp2", "tp4_sp", "cp2", "cp4", "pp2",
                                                          "dp2_zero1", "all")),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param));
                         });

}  // namespace
}  // namespace mgc
