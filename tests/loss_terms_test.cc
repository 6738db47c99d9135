// A model with two loss terms and two kinds of layers, trained on one rank and on eight: both terms
// are reported, in both runs alike, and the plans are proved.

#include <string>
#include <vector>

#include "graph/text/parser.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/resize.h"
#include "runtime/train/trainer.h"

namespace mgc {
namespace {

constexpr int64_t kSeqLength = 4;
constexpr char kModel[] = R"(graph @two_terms logical layers=2 (
  param %words: f32[vocab=257,embed=8] {decay=1, init="normal", std=0.5},
  param %up: f32[embed=8,mlp=16] {decay=1, init="normal", std=0.5},
  param %down: f32[mlp=16,embed=8] {decay=1, init="normal", std=0.5},
  param %head: f32[vocab=257,embed=8] {decay=1, init="normal", std=0.5},
  data %tokens: i64[batch=2,seq=6],
  data %targets: i64[batch=2,seq=6],
  data %weights: f32[batch=2,seq=6]
) {
  %x = lookup(%words, %tokens) layer embedding
  %a = matmul(%x, %up) {spec="b s e, e m -> b s m"} layer 0
  %g = gelu(%a) layer 0
  %y = matmul(%g, %down) {spec="b s m, m e -> b s e"} layer 0
  %activity = weighted_sum(%g, %g) layer 0
  %z = gelu(%y) layer 1
  %logits = matmul(%z, %head) {spec="b s e, v e -> b s v"} layer 2
  %top = reduce_max(%logits) {dims=[2]} layer 2
  %shift = stop_gradient(%top) layer 2
  %sum = exp_sum(%logits, %shift) layer 2
  %lse = log_shift(%sum, %shift) layer 2
  %picked = pick(%logits, %targets) layer 2
  %nll = sub(%lse, %picked) layer 2
  %loss = weighted_sum(%nll, %weights) layer 2
  %count = total(%weights) layer 2
  loss "nll" = %loss weight 1.0
  loss "activity" = %activity weight 0.01
  report "count" = %count
}
)";

absl::StatusOr<Plan> CompileFor(int64_t tp, int64_t pp, int64_t dp) {
  const absl::StatusOr<Graph> model = ParseGraph(kModel, "two_terms");
  if (!model.ok()) return model.status();
  const Resized resized = Resize(NameDims(*model), dp, kSeqLength);
  if (!resized.graph.has_value()) return resized.violations.ToStatus();
  CompileOptions options;
  options.parallel.world_size = tp * pp * dp;
  options.parallel.tp = tp;
  options.parallel.pp = pp;
  options.parallel.global_batch_size = 8;
  options.parallel.seq_length = kSeqLength;
  options.machine = *FindMachinePreset("cpu-threads");
  return Compile(*resized.graph, {2, 8, 2, 2, 4, 16, 257, kSeqLength}, options);
}

std::vector<StepRecord> Train(const Plan& plan) {
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.seed = 5;
  options.data = *TokenDataset::FromBytes("to be, or not to be, that is the question: whether",
                                          kSeqLength, "text");
  options.lr.max_lr = 0.01;
  auto trainer = Trainer::Create(plan, options);
  std::vector<StepRecord> records;
  if (!trainer.ok()) {
    ADD_FAILURE() << trainer.status();
    return records;
  }
  for (int step = 0; step < 3; ++step) {
    const absl::StatusOr<StepRecord> record = (*trainer)->Step();
    if (!record.ok()) {
      ADD_FAILURE() << record.status();
      return records;
    }
    records.push_back(*record);
  }
  return records;
}

TEST(LossTermsTest, AreReportedByEveryPlanAlike) {
  const absl::StatusOr<Plan> one = CompileFor(1, 1, 1);
  const absl::StatusOr<Plan> eight = CompileFor(2, 2, 2);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(eight.ok()) << eight.status();
  for (const absl::StatusOr<Plan>* plan : {&one, &eight}) {
    EXPECT_EQ(VerifyPlan(**plan).findings.ToString(), "");
  }
  const std::vector<StepRecord> expected = Train(*one);
  const std::vector<StepRecord> found = Train(*eight);
  ASSERT_EQ(expected.size(), found.size());
  ASSERT_EQ(expected.size(), 3u);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].other_losses.size(), 1u);
    ASSERT_EQ(found[i].other_losses.count("activity"), 1u);
    const double activity = expected[i].other_losses.at("activity");
    EXPECT_GT(activity, 0);
    EXPECT_NEAR(found[i].other_losses.at("activity") / activity, 1, 1e-5);
    EXPECT_NEAR(found[i].loss / expected[i].loss, 1, 1e-5);
    EXPECT_NEAR(found[i].grad_norm / expected[i].grad_norm, 1, 1e-5);
  }
  // The second term counts: it falls too.
  EXPECT_LT(expected[2].other_losses.at("activity"), expected[0].other_losses.at("activity"));
}

}  // namespace
}  // namespace mgc
