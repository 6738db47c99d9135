// The compiler makes the same plan of a folded model as of the whole one, byte for byte
// (passes/fold/fold_model.h); and it says no more of a model that it cannot fold.

#include <cctype>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "frontends/families.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/plan/proto/plan_difference.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "passes/compile.h"

namespace mgc {
namespace {

struct FoldCase {
  std::string preset = "gpt2-tiny";
  int64_t layers = 5;
  int64_t dp = 1;
  int64_t micro_batches = 4;
  ParallelConfig parallel = {};
  bool folds = true;
  bool tied = true;  // as the family has it
};

FoldCase Case(const char* preset, int64_t layers, int64_t tp, int64_t pp, int64_t dp) {
  FoldCase c;
  c.preset = preset;
  c.layers = layers;
  c.dp = dp;
  c.parallel.tp = tp;
  c.parallel.pp = pp;
  return c;
}

FoldCase Sp(FoldCase c) {
  c.parallel.sequence_parallel = true;
  return c;
}
FoldCase Zero(FoldCase c, int64_t level) {
  c.parallel.zero = level;
  return c;
}
FoldCase In(FoldCase c, DType type) {
  c.parallel.compute_type = type;
  return c;
}
FoldCase Again(FoldCase c, RecomputeKind kind) {
  c.parallel.recompute = kind;
  return c;
}
FoldCase Chunks(FoldCase c, int64_t vp) {
  c.parallel.vp = vp;
  c.parallel.schedule = ScheduleKind::kInterleaved;
  return c;
}
FoldCase Cp(FoldCase c, int64_t cp) {
  c.parallel.cp = cp;
  return c;
}
FoldCase Pieces(FoldCase c, int64_t pieces) {
  c.parallel.split_products = pieces;
  return c;
}
FoldCase NarrowSums(FoldCase c) {
  c.parallel.gradient_sums = DType::kBF16;
  return c;
}
FoldCase Keeping(FoldCase c) {
  c.parallel.reshard_after_forward = false;
  return c;
}
FoldCase Group(FoldCase c, int64_t ranks) {
  c.parallel.zero_group = ranks;
  return c;
}
FoldCase Layout(FoldCase c, const char* layout) {
  c.parallel.layout.layout = layout;
  return c;
}
FoldCase First(FoldCase c, int64_t layers) {
  c.parallel.layout.decoder_first_layers = layers;
  return c;
}
FoldCase Untied(FoldCase c) {
  c.tied = false;
  return c;
}
FoldCase Whole(FoldCase c) {
  c.folds = false;
  return c;
}

std::vector<FoldCase> Cases() {
  constexpr DType kBF16 = DType::kBF16;
  constexpr DType kF16 = DType::kF16;
  constexpr auto kFull = RecomputeKind::kFull;
  constexpr auto kSelective = RecomputeKind::kSelective;
  return {
      Case("gpt2-tiny", 5, 1, 1, 1),
      Case("gpt2-tiny", 4, 1, 1, 1),
      Whole(Case("gpt2-tiny", 3, 1, 1, 1)),
      Case("llama-tiny", 9, 1, 1, 1),
      Untied(Case("gpt2-tiny", 6, 1, 2, 1)),
      Case("gpt2-tiny", 9, 1, 4, 1),
      Case("gpt2-tiny", 12, 1, 12, 1),
      Sp(Case("llama-tiny", 6, 2, 1, 1)),
      Sp(Case("llama-tiny", 8, 2, 2, 2)),
      Zero(Sp(Case("gpt2-tiny", 7, 2, 2, 2)), 1),
      Zero(Case("gpt2-tiny", 8, 1, 2, 2), 2),
      Zero(Case("llama-tiny", 9, 1, 2, 2), 3),
      Zero(Case("gpt2-tiny", 11, 1, 4, 2), 3),
      Keeping(Zero(Case("gpt2-tiny", 8, 1, 2, 2), 3)),
      Group(In(Zero(Sp(Case("gpt2-tiny", 8, 2, 2, 4)), 3), kBF16), 2),
      In(Case("gpt2-tiny", 6, 1, 1, 1), kBF16),
      In(Zero(Sp(Case("llama-tiny", 8, 2, 2, 2)), 1), kBF16),
      NarrowSums(In(Case("gpt2-tiny", 7, 1, 2, 2), kBF16)),
      NarrowSums(In(Zero(Case("gpt2-tiny", 7, 1, 2, 2), 2), kBF16)),
      In(Case("gpt2-tiny", 6, 1, 2, 1), kF16),
      In(Zero(Case("llama-tiny", 8, 1, 2, 2), 3), kF16),
      Again(Case("gpt2-tiny", 7, 1, 2, 1), kFull),
      Again(Sp(Case("gpt2-tiny", 7, 2, 2, 1)), kSelective),
      Again(In(Zero(Sp(Case("llama-tiny", 8, 2, 2, 2)), 3), kBF16), kFull),
      Chunks(Case("gpt2-tiny", 9, 1, 2, 1), 2),
      Chunks(Again(Zero(Sp(Case("llama-tiny", 12, 2, 2, 2)), 1), kFull), 3),
      Chunks(Case("llama-tiny", 8, 1, 2, 1), 4),
      Chunks(Case("gpt2-tiny", 8, 1, 3, 1), 3),
      Cp(Case("llama-tiny", 6, 1, 1, 1), 2),
      Cp(Sp(Case("gpt2-tiny", 6, 2, 2, 1)), 2),
      Pieces(Sp(Case("llama-tiny", 6, 2, 2, 1)), 2),
      Pieces(Cp(Sp(Case("gpt2-tiny", 6, 2, 1, 1)), 2), 4),
      Layout(Case("gpt2-tiny", 6, 1, 2, 1), "Et*5|tL"),
      Whole(Layout(Case("gpt2-tiny", 6, 1, 3, 1), "Et*5||tL")),
      First(Case("gpt2-tiny", 9, 1, 3, 1), 1),
      Case("bert-tiny", 6, 2, 2, 1),
      Case("gemma-tiny", 6, 1, 2, 1),
      Whole(Case("gemma2-tiny", 6, 1, 2, 1)),  // windows alternate
      Case("gpt-neox-tiny", 6, 2, 2, 1),
      Case("mistral-tiny", 6, 1, 2, 2),
      Case("phi3-tiny", 6, 2, 1, 1),
      Case("qwen2-tiny", 6, 1, 2, 1),
      Case("qwen3-tiny", 6, 1, 2, 1),
      Case("vit-tiny", 6, 2, 2, 1),
  };
}

std::string NameOf(const FoldCase& c) {
  const ParallelConfig& p = c.parallel;
  std::string name = absl::StrCat(
      c.preset, "_", c.layers, "_tp", p.tp, "_pp", p.pp, "_vp", p.vp, "_dp", c.dp, "_cp", p.cp,
      p.sequence_parallel ? "_sp" : "", "_zero", p.zero, "_", p.zero_group, "_",
      ToString(p.recompute), "_", NameOf(p.compute_type), "_", NameOf(p.gradient_sums), "_pieces",
      p.split_products, p.reshard_after_forward ? "" : "_keeping", c.tied ? "" : "_untied");
  if (p.layout.layout) absl::StrAppend(&name, "_layout", c.folds);
  if (p.layout.decoder_first_layers) absl::StrAppend(&name, "_first");
  for (char& ch : name) {
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  }
  return name;
}

struct Compiled {
  absl::StatusOr<Plan> plan;
  bool folded = false;  // whether the passes that made it saw fewer layers
};

Compiled CompileWith(const Graph& model, const ModelDims& dims, CompileOptions options, bool fold) {
  Compiled compiled;
  options.fold_layers = fold;
  options.run.after_pass = [&](const FinishedPass& pass) {
    const auto* graphs = std::get_if<StepGraphs>(&pass.form);
    if (graphs != nullptr) compiled.folded = graphs->train.num_layers() < model.num_layers();
    return true;
  };
  compiled.plan = Compile(model, dims, options);
  return compiled;
}

class FoldLayersTest : public testing::TestWithParam<FoldCase> {};

TEST_P(FoldLayersTest, PlansAreTheSame) {
  const FoldCase& c = GetParam();
  absl::StatusOr<ModelConfig> config = LoadModelPreset(c.preset);
  ASSERT_TRUE(config.ok()) << config.status();
  config->layers = c.layers;
  if (!c.tied) config->tie_embeddings = false;
  CompileOptions options;
  options.parallel = c.parallel;
  const ParallelConfig& p = c.parallel;
  options.parallel.world_size = p.tp * p.cp * p.pp * c.dp;
  options.parallel.global_batch_size = c.dp * c.micro_batches;
  options.parallel.seq_length = TraitsOf(config->family).images ? config->seq_length : 16;
  options.machine = *FindMachinePreset("a100x8");
  const absl::StatusOr<Graph> model = BuildModel(*config, c.dp, options.parallel.seq_length);
  ASSERT_TRUE(model.ok()) << model.status();

  const Compiled whole = CompileWith(*model, DimsOf(*config), options, false);
  const Compiled folded = CompileWith(*model, DimsOf(*config), options, true);
  ASSERT_TRUE(whole.plan.ok()) << whole.plan.status();
  ASSERT_TRUE(folded.plan.ok()) << folded.plan.status();
  EXPECT_FALSE(whole.folded);
  EXPECT_EQ(folded.folded, c.folds);
  EXPECT_EQ(PlanDifference(*whole.plan, *folded.plan), "");
  EXPECT_EQ(SerializePlan(*whole.plan), SerializePlan(*folded.plan));
}

INSTANTIATE_TEST_SUITE_P(Plans, FoldLayersTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace mgc
