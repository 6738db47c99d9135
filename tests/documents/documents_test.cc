// Several documents in a sample train as each alone: a plan whose attention is masked between
// documents, on samples of two, against a plain one on samples of one.

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/ir/step_names.h"
#include "graph/types/machine.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "passes/compile.h"
#include "runtime/train/trainer.h"

namespace mgc {
namespace {

constexpr int64_t kDocument = 8;  // tokens of each, its end included
constexpr int64_t kTokens = 128;  // of a step
constexpr int kSteps = 3;
constexpr char kEnd = '.';

// Documents of kDocument tokens, one behind the other, and one token more.
std::string Text() {
  std::string text;
  for (int64_t i = 0; i <= kSteps * kTokens; ++i) {
    text += i % kDocument == kDocument - 1 ? kEnd : static_cast<char>('a' + (i * i + i / 7) % 23);
  }
  return text;
}

struct Layout {
  int64_t tp, pp, dp;
  bool sp;
};

absl::StatusOr<Plan> PlanFor(const char* preset, int64_t seq, const ModelOptions& model,
                             const Layout& layout) {
  ModelConfig config = *LoadModelPreset(preset);
  config.embedding_dropout = config.hidden_dropout = config.attention_dropout = 0;
  CompileOptions options;
  ParallelConfig& parallel = options.parallel;
  parallel.tp = layout.tp;
  parallel.pp = layout.pp;
  parallel.sequence_parallel = layout.sp;
  parallel.world_size = layout.tp * layout.pp * layout.dp;
  parallel.seq_length = seq;
  parallel.global_batch_size = kTokens / seq;
  parallel.micro_batch_size = parallel.global_batch_size / layout.dp / 2;
  options.machine = *FindMachinePreset("cpu-threads");
  const absl::StatusOr<Graph> graph =
      BuildModel(config, parallel.micro_batch_size * layout.dp, seq, model);
  if (!graph.ok()) return graph.status();
  return Compile(*graph, DimsOf(config), options);
}

std::vector<StepRecord> Train(const Plan& plan, bool mask_loss) {
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.data = *TokenDataset::FromBytes(Text(), plan.seq_length, "text");
  options.data->EndDocumentsWith({kEnd, mask_loss});
  options.lr.max_lr = 1e-3;
  options.lr.style = LrDecayStyle::kConstant;
  options.hyper[kEpsScalar] = 1e-3;  // what rounding leaves of a gradient of zero makes no step
  std::vector<StepRecord> records;
  const auto trainer = Trainer::Create(plan, options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  for (int step = 0; trainer.ok() && step < kSteps; ++step) {
    const absl::StatusOr<StepRecord> record = (*trainer)->Step();
    EXPECT_TRUE(record.ok()) << record.status();
    if (record.ok()) records.push_back(*record);
  }
  return records;
}

class DocumentsTest : public testing::TestWithParam<std::tuple<const char*, Layout>> {};

TEST_P(DocumentsTest, TrainAsEachAlone) {
  const auto& [preset, layout] = GetParam();
  ModelOptions masked;
  masked.mask_documents = true;
  masked.restart_positions = absl::string_view(preset) == "gpt2-tiny";
  const absl::StatusOr<Plan> packed = PlanFor(preset, 2 * kDocument, masked, layout);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(VerifyPlan(*packed).findings.ToString(), "");
  const absl::StatusOr<Plan> alone = PlanFor(preset, kDocument, {}, {1, 1, 1, false});
  ASSERT_TRUE(alone.ok()) << alone.status();
  const absl::StatusOr<Plan> plain = PlanFor(preset, 2 * kDocument, {}, {1, 1, 1, false});
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const bool mask_loss : {false, true}) {
    const std::vector<StepRecord> many = Train(*packed, mask_loss);
    const std::vector<StepRecord> one = Train(*alone, mask_loss);
    const std::vector<StepRecord> unmasked = Train(*plain, mask_loss);
    ASSERT_EQ(many.size(), size_t{kSteps});
    ASSERT_EQ(one.size(), size_t{kSteps});
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(many[step].loss, one[step].loss, 1e-5 * one[step].loss) << step;
      EXPECT_NEAR(many[step].grad_norm, one[step].grad_norm, 1e-5 * one[step].grad_norm) << step;
    }
    EXPECT_GT(std::fabs(unmasked[0].grad_norm - one[0].grad_norm), 1e-4 * one[0].grad_norm)
        << "the masks make no difference";
    const double tokens = many[0].tokens_per_second * many[0].ms / 1e3;
    EXPECT_NEAR(tokens, mask_loss ? kTokens - kTokens / kDocument : kTokens, 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DocumentsTest,
                         testing::Combine(testing::Values("gpt2-tiny", "llama-tiny", "gemma2-tiny"),
                                          testing::Values(Layout{1, 1, 1, false},
                                                          Layout{2, 2, 2, true})),
                         [](const auto& info) {
                           const Layout& layout = std::get<1>(info.param);
                           return absl::StrCat(std::string(std::get<0>(info.param), 4), info.index,
                                               "_", layout.tp * layout.pp * layout.dp);
                         });

// A plan that masks needs to know what ends documents.
TEST(Documents, NeedAnEnd) {
  ModelOptions masked;
  masked.mask_documents = masked.restart_positions = true;
  const absl::StatusOr<Plan> plan = PlanFor("gpt2-tiny", 16, masked, {1, 1, 1, false});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.data = *TokenDataset::FromBytes(Text(), 16, "text");
  const std::string why(Trainer::Create(*plan, options).status().message());
  for (const char* input : {"documents", "positions"}) {
    EXPECT_NE(why.find(absl::StrCat("`", input,
                                    "` i64[batch=4,seq=16] needs the id of the token "
                                    "that ends documents: --eod ID")),
              std::string::npos)
        << why;
  }
}

}  // namespace
}  // namespace mgc
