// A model of features, kinds and labels, none of which are tokens: mean squared error over labels
// of four values a sample. Its plans are proved, and train alike on one rank and on several.

#include <unistd.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/text/parser.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/resize.h"
#include "runtime/data/safetensors.h"
#include "runtime/train/trainer.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSamples = 24;
constexpr int64_t kBatch = 12;  // of a step
constexpr char kModel[] = R"(graph @regression logical layers=1 (
  param %mix: f32[in=6,embed=8] {decay=1, init="normal", std=0.5},
  param %kinds: f32[kinds=5,embed=8] {decay=1, init="normal", std=0.5},
  param %up: f32[embed=8,mlp=16] {decay=1, init="normal", std=0.5},
  param %down: f32[mlp=16,embed=8] {decay=1, init="normal", std=0.5},
  param %head: f32[embed=8,out=4] {decay=1, init="normal", std=0.5},
  data %features: f32[batch=8,in=6],
  data %kind: i64[batch=8],
  data %labels: f32[batch=8,out=4],
  data %weights: f32[batch=8,out=4]
) {
  %f = matmul(%features, %mix) {spec="b i, i e -> b e"} layer embedding
  %k = lookup(%kinds, %kind) layer embedding
  %x = add(%f, %k) layer embedding
  %a = matmul(%x, %up) {spec="b e, e m -> b m"} layer 0
  %g = gelu(%a) layer 0
  %y = matmul(%g, %down) {spec="b m, m e -> b e"} layer 0
  %z = matmul(%y, %head) {spec="b e, e o -> b o"} layer 1
  %d = sub(%z, %labels) layer 1
  %loss = weighted_sum(%d, %d) layer 1
  %count = total(%weights) layer 1
  loss "mse" = %loss weight 1.0
  report "count" = %count
}
)";

absl::StatusOr<Plan> CompileFor(int64_t tp, int64_t dp, int64_t samples = 2) {
  const absl::StatusOr<Graph> model = ParseGraph(kModel, "regression");
  if (!model.ok()) return model.status();
  const Resized resized = Resize(NameDims(*model), samples * dp, 1);
  if (!resized.graph.has_value()) return resized.violations.ToStatus();
  CompileOptions options;
  options.parallel.world_size = tp * dp;
  options.parallel.tp = tp;
  options.parallel.micro_batch_size = samples;
  options.parallel.global_batch_size = kBatch;
  options.machine = *FindMachinePreset("cpu-threads");
  return Compile(*resized.graph, {1, 8, 2, 2, 4, 16, 0, 1}, options);
}

class NamedInputsTest : public testing::Test {
 protected:
  NamedInputsTest()
      : path_(absl::StrCat(testing::TempDir(), "/inputs_", getpid(), ".safetensors")) {
    for (int64_t i = 0; i < kSamples * 6; ++i) features_.push_back(std::sin(0.7f * i));
    for (int64_t i = 0; i < kSamples; ++i) kind_.push_back(i % 5);
    for (int64_t i = 0; i < kSamples * 4; ++i) labels_.push_back(std::cos(0.3f * i));
    Write();
  }
  ~NamedInputsTest() override { unlink(path_.c_str()); }

  void Write() {
    EXPECT_TRUE(
        WriteSafetensors(path_, {ViewOf("x", {kSamples, 6}, absl::MakeConstSpan(features_)),
                                 ViewOf("kind", {kSamples}, absl::MakeConstSpan(kind_)),
                                 ViewOf("labels", {kSamples, 4}, absl::MakeConstSpan(labels_))})
            .ok());
  }

  TrainOptions Options() const {
    TrainOptions options;
    options.kernels = kernels_;
    options.lr.max_lr = 0.01;
    options.lr.style = LrDecayStyle::kConstant;
    options.clip_grad = 0;
    options.inputs = {
        {"features", {path_, "x"}}, {"kind", {path_, "kind"}}, {"labels", {path_, "labels"}}};
    return options;
  }

  std::vector<StepRecord> Train(const Plan& plan) const {
    std::vector<StepRecord> records;
    const auto trainer = Trainer::Create(plan, Options());
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    for (int step = 0; trainer.ok() && step < 5; ++step) {
      const absl::StatusOr<StepRecord> record = (*trainer)->Step();
      EXPECT_TRUE(record.ok()) << record.status();
      if (record.ok()) records.push_back(*record);
    }
    return records;
  }

  std::string Why(const Plan& plan, const TrainOptions& options) const {
    return std::string(Trainer::Create(plan, options).status().message());
  }

  const std::vector<KernelEntry> kernels_ = CpuKernels();
  const std::string path_;
  std::vector<float> features_, labels_;
  std::vector<int64_t> kind_;
};

TEST_F(NamedInputsTest, EveryPlanTrainsAlike) {
  const absl::StatusOr<Plan> one = CompileFor(1, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(VerifyPlan(*one).findings.ToString(), "");
  const std::vector<StepRecord> expected = Train(*one);
  ASSERT_EQ(expected.size(), 5u);
  EXPECT_LT(expected[4].loss, expected[0].loss);
  // The mean is over the weights: four a sample.
  EXPECT_NEAR(expected[0].tokens_per_second * expected[0].ms, kBatch * 4 * 1e3, 1e-3);
  // tp, dp, samples of a micro-batch and data-parallel rank.
  const std::vector<std::array<int64_t, 3>> layouts = {{2, 1, 2}, {1, 2, 2}, {2, 2, 3}, {1, 4, 1},
                                                       {1, 3, 4}, {2, 3, 2}, {1, 1, 12}};
  for (const auto& [tp, dp, samples] : layouts) {
    const absl::StatusOr<Plan> plan = CompileFor(tp, dp, samples);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(VerifyPlan(*plan).findings.ToString(), "");
    const std::vector<StepRecord> found = Train(*plan);
    ASSERT_EQ(found.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(found[i].loss / expected[i].loss, 1, 1e-5) << "tp " << tp << " dp " << dp;
      EXPECT_NEAR(found[i].grad_norm / expected[i].grad_norm, 1, 1e-5);
    }
  }
}

TEST_F(NamedInputsTest, SaysAllThatIsWrong) {
  const absl::StatusOr<Plan> plan = CompileFor(1, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  TrainOptions options = Options();
  options.inputs = {{"features", {path_, "labels"}},
                    {"labels", {path_, "kind"}},
                    {"labels", {path_, "labels"}},
                    {"masks", {path_, "x"}}};
  const std::string why = Why(*plan, options);
  EXPECT_THAT(why, HasSubstr("data input `features` f32[batch=2,in=6]: "));
  EXPECT_THAT(why, HasSubstr(" holds f32[samples=24,4]; the element type and the dims"));
  EXPECT_THAT(why, HasSubstr(" holds i64[samples=24]; the element type and the dims"));
  EXPECT_THAT(why, HasSubstr("data input `labels` is given twice"));
  EXPECT_THAT(why, HasSubstr("the model has no data input `masks`"));
  EXPECT_THAT(why, HasSubstr("nothing feeds data input `kind` i64[batch=2]: "
                             "--inputs kind=FILE.npy"));
  EXPECT_THAT(why, HasSubstr("the model's data inputs: `features` f32[batch=2,in=6], "
                             "`kind` i64[batch=2], `labels` f32[batch=2,out=4]"));
  options.inputs = {{"features", {path_, "y"}}};
  EXPECT_THAT(Why(*plan, options), HasSubstr("has no tensor y"));
  options.inputs.clear();
  EXPECT_FALSE(Trainer::Create(*plan, options).ok()) << "no data at all";
}

TEST_F(NamedInputsTest, IndicesLieInTheirTables) {
  kind_[7] = 5;
  Write();
  const absl::StatusOr<Plan> plan = CompileFor(1, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Why(*plan, Options()), HasSubstr("in sample 7 lies 5, outside the 5 entries"));
}

// Held back or in files of their own, the same samples are evaluated alike by every plan.
TEST_F(NamedInputsTest, EvaluatesTensors) {
  const int64_t held = kBatch;
  const int64_t from = kSamples - held;
  const std::string tail = absl::StrCat(path_, ".tail.safetensors");
  ASSERT_TRUE(
      WriteSafetensors(
          tail, {ViewOf("features", {held, 6}, absl::MakeConstSpan(features_).subspan(from * 6)),
                 ViewOf("kind", {held}, absl::MakeConstSpan(kind_).subspan(from)),
                 ViewOf("labels", {held, 4}, absl::MakeConstSpan(labels_).subspan(from * 4))})
          .ok());
  const std::vector<InputFile> files = {
      {"features", {tail, "features"}}, {"kind", {tail, "kind"}}, {"labels", {tail, "labels"}}};
  const absl::StatusOr<Plan> one = CompileFor(1, 1);
  const absl::StatusOr<Plan> four = CompileFor(2, 2, 3);
  ASSERT_TRUE(one.ok() && four.ok());
  TrainOptions on_tail = Options();
  on_tail.inputs = files;
  const absl::StatusOr<StepRecord> expected = (*Trainer::Create(*one, on_tail))->Step();
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const Plan* plan : {&*one, &*four}) {
    for (bool own_files : {false, true}) {
      TrainOptions options = Options();
      if (own_files) options.eval_inputs = files;
      if (!own_files) options.eval_tail_samples = held;
      const auto trainer = Trainer::Create(*plan, options);
      ASSERT_TRUE(trainer.ok()) << trainer.status();
      const absl::StatusOr<EvalRecord> found = (*trainer)->Evaluate();
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_NEAR(found->loss / expected->loss, 1, 1e-5);
      EXPECT_EQ(found->samples, held);
      EXPECT_EQ(found->tokens, 4 * held);
    }
  }
  unlink(tail.c_str());
}

// The loss of this model does not ask what a sample weighs: a batch cannot be filled up.
TEST_F(NamedInputsTest, EvaluatesFullBatchesOfWhatHasNoWeights) {
  const absl::StatusOr<Plan> plan = CompileFor(1, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  TrainOptions options = Options();
  options.eval_tail_samples = 5;
  EXPECT_THAT(Why(*plan, options), HasSubstr("evaluation has 5 samples; its losses do not all "
                                             "depend on an input `weights`"));
  options.eval_tail_samples = kBatch + 5;
  const auto trainer = Trainer::Create(*plan, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  EXPECT_EQ((*trainer)->Evaluate()->samples, kBatch);
  options.eval_inputs = options.inputs;
  EXPECT_THAT(Why(*plan, options), HasSubstr("or a tail of the training data, not both"));
}

}  // namespace
}  // namespace mgc
