// The compiler makes the same plan of a folded model as of the whole one, byte for byte
// (passes/fold/fold_model.h); and it says no more of a model that it cannot fold.

#include <cctype>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "frontends/families.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/base/status.h"
#include "graph/plan/proto/plan_difference.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/text/parser.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/config/strategy_text.h"

namespace mgc {
namespace {

constexpr int64_t kMicroBatches = 4;

struct FoldCase {
  std::string preset = "gpt2-tiny";
  int64_t layers = 5;
  int64_t dp = 1;
  int64_t seq_length = 16;
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
FoldCase Again(FoldCase c, const char* kinds) {
  c.parallel.recompute = ParseRecomputation(kinds).value();
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
FoldCase Long(FoldCase c) {
  c.seq_length = 32;
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
      Case("llama-tiny", 6, 8, 2, 1),
      Zero(Sp(Case("llama-tiny", 6, 8, 1, 2)), 3),
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
      Again(Case("gpt2-tiny", 12, 1, 2, 1), "full*5,none*7"),
      Again(Sp(Case("llama-tiny", 13, 2, 2, 1)), "full*5,selective*4,none,full*3"),
      Again(In(Zero(Sp(Case("llama-tiny", 8, 2, 2, 2)), 3), kBF16), kFull),
      // Rounds of stages that compute their first layers again.
      Again(Case("gpt2-tiny", 10, 1, 5, 1), "full,none,full,none,full,none,full,none,full,none"),
      Again(Untied(Zero(Case("gpt2-tiny", 15, 1, 5, 2), 1)),
            "full*2,none,full*2,none,full*2,none,full*2,none,full*2,none"),
      Again(In(Zero(Sp(Case("llama-tiny", 20, 2, 2, 2)), 3), kBF16),
            "none,full,selective*2,full,selective*2,full,selective*2,full,selective*2,full,"
            "selective*2,full*4"),
      Chunks(Again(Case("llama-tiny", 36, 1, 3, 1),
                   "full*7,none*5,full,none*5,full,none*5,full,none*5,full,none*5"),
             2),
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
      Case("gemma2-tiny", 6, 1, 2, 1),
      Whole(Long(Case("gemma2-tiny", 6, 1, 2, 1))),  // windows alternate
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
      p.split_products, p.reshard_after_forward ? "" : "_keeping", c.tied ? "" : "_untied", "_seq",
      c.seq_length);
  if (p.layout.layout) absl::StrAppend(&name, "_layout", c.folds);
  if (p.layout.decoder_first_layers) absl::StrAppend(&name, "_first");
  for (char& ch : name) {
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  }
  return name;
}

// The plan, and whether the passes that made it saw fewer layers than the model has.
absl::StatusOr<Plan> CompileWith(const Graph& model, const ModelDims& dims, CompileOptions options,
                                 bool* folded) {
  options.run.after_pass = [&model, folded](const FinishedPass& pass) {
    const auto* graphs = std::get_if<StepGraphs>(&pass.form);
    if (graphs != nullptr) *folded = graphs->train.num_layers() < model.num_layers();
    return true;
  };
  return Compile(model, dims, options);
}

// Compiles a model with folding and without; whether it folds.
bool FoldsToTheSamePlan(const Graph& model, const ModelDims& dims, CompileOptions options) {
  bool folded = false;
  const absl::StatusOr<Plan> made = CompileWith(model, dims, options, &folded);
  options.fold_layers = false;
  options.run.check = false;
  bool never = false;
  const absl::StatusOr<Plan> whole = CompileWith(model, dims, options, &never);
  EXPECT_FALSE(never);
  EXPECT_TRUE(whole.ok() && made.ok()) << whole.status() << made.status();
  if (!whole.ok() || !made.ok()) return false;
  const bool same = SerializePlan(*whole) == SerializePlan(*made);
  EXPECT_TRUE(same) << PlanDifference(*whole, *made);
  return folded;
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
  options.parallel.global_batch_size = c.dp * kMicroBatches;
  options.parallel.seq_length = TraitsOf(config->family).images ? config->seq_length : c.seq_length;
  options.machine = *FindMachinePreset("a100x8");
  const absl::StatusOr<Graph> model = BuildModel(*config, c.dp, options.parallel.seq_length);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(FoldsToTheSamePlan(*model, DimsOf(*config), options), c.folds);
}

INSTANTIATE_TEST_SUITE_P(Plans, FoldLayersTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOf(info.param); });

// A model of `layers` layers as a user writes it, one to a line. `layer` makes %out of %in, what
// the layer before has made, and reads its parameters `params`; `#` stands for the layer's number
// and
// `$` for the `%` of a name that is no layer's.
Graph Written(int layers, absl::string_view params, absl::string_view layer,
              absl::string_view shared = "") {
  const auto out = [](int i) {
    return i < 0 ? std::string("%embedding") : absl::StrCat("%layers.", i, ".out");
  };
  std::string inputs = absl::StrCat("param %first: f32[embed=8] {init=\"ones\"},\n", shared);
  std::string nodes = "%embedding = mul(%x, %first) layer embedding\n";
  for (int i = 0; i < layers; ++i) {
    const std::string number = absl::StrCat(i);
    const std::string before = out(i - 1);
    const std::string prefix = absl::StrCat("%layers.", i, ".");
    for (const auto& [text, to] :
         {std::make_pair(params, &inputs), std::make_pair(layer, &nodes)}) {
      absl::StrAppend(to, absl::StrReplaceAll(
                              text, {{"%in", before}, {"%", prefix}, {"$", "%"}, {"#", number}}));
    }
  }
  const std::string head = absl::StrCat(" layer ", layers, "\n");
  const absl::StatusOr<Graph> graph = ParseGraph(
      absl::StrCat("graph @written layers=", layers, " (\n", inputs,
                   "data %x: f32[batch=4,embed=8,embed=8],\ndata %weights: f32[batch=4]\n) {\n",
                   nodes, "%square = mul(", out(layers - 1), ", ", out(layers - 1), ")", head,
                   "%loss = total(%square)", head, "%count = total(%weights)", head,
                   "loss \"loss\" = %loss\nreport \"count\" = %count\n}\n"),
      "written.mgc");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : Graph();
}

constexpr char kParams[] = "param %w: f32[embed=8] {init=\"ones\"},\n";
constexpr char kLayer[] = "%h = mul(%in, %w) layer #\n%out = gelu(%h) layer #\n";

CompileOptions OptionsFor(int64_t pp, int64_t vp = 1) {
  CompileOptions options;
  options.machine = MachinePresets().front();
  options.parallel.world_size = pp;
  options.parallel.pp = pp;
  options.parallel.vp = vp;
  if (vp > 1) options.parallel.schedule = ScheduleKind::kInterleaved;
  options.parallel.micro_batch_size = 4;
  options.parallel.global_batch_size = 4 * kMicroBatches;
  return options;
}

TEST(FoldWrittenModelTest, LinesOfATextAreTheSame) {
  const Graph model = Written(8, kParams, kLayer);
  EXPECT_TRUE(FoldsToTheSamePlan(model, {}, OptionsFor(1)));
  EXPECT_TRUE(FoldsToTheSamePlan(model, {}, OptionsFor(2)));
  EXPECT_TRUE(FoldsToTheSamePlan(model, {}, OptionsFor(8)));
  EXPECT_TRUE(FoldsToTheSamePlan(model, {}, OptionsFor(2, 4)));
}

TEST(FoldWrittenModelTest, SharedParametersAreCompiledWhole) {
  const Graph model = Written(6, "", "%h = mul(%in, $w) layer #\n%out = gelu(%h) layer #\n",
                              "param %w: f32[embed=8] {init=\"ones\"},\n");
  EXPECT_FALSE(FoldsToTheSamePlan(model, {}, OptionsFor(1)));
  EXPECT_FALSE(FoldsToTheSamePlan(model, {}, OptionsFor(3)));
}

TEST(FoldWrittenModelTest, WhatAllLayersReadIsCompiledWhole) {
  const Graph model =
      Written(6, kParams, "%h = mul(%in, %w) layer #\n%out = add(%h, $embedding) layer #\n");
  EXPECT_FALSE(FoldsToTheSamePlan(model, {}, OptionsFor(1)));
  EXPECT_FALSE(FoldsToTheSamePlan(model, {}, OptionsFor(3)));
}

// What one layer takes cut along one dim, the next one takes cut along the other: the passes see
// that layers are not what they were, and all are compiled.
TEST(FoldWrittenModelTest, LayersThatTurnTheirShardingAreCompiledWhole) {
  const Graph model =
      Written(8, "", "%h = gelu(%in) layer #\n%out = transpose(%h) {perm=[0,2,1]} layer #\n");
  const absl::StatusOr<StrategySpec> strategy =
      ParseStrategy("strategy @turn {\n  row * { embed -> tp }\n}\n", "turn.mgc");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  for (const int64_t pp : {1, 2}) {
    CompileOptions options = OptionsFor(pp);
    EXPECT_TRUE(FoldsToTheSamePlan(model, {}, options));
    options.strategy = *strategy;
    options.parallel.tp = 2;
    options.parallel.world_size *= 2;
    EXPECT_FALSE(FoldsToTheSamePlan(model, {}, options));
  }
}

TEST(FoldWrittenModelTest, RowsOfOneLayerAreCompiledWhole) {
  const Graph model = Written(8, kParams, kLayer);
  CompileOptions options = OptionsFor(2);
  options.parallel.tp = 2;
  options.parallel.world_size = 4;
  const absl::StatusOr<StrategySpec> strategy = ParseStrategy(
      "strategy @odd {\n  row * in \"layers.5.w\" { embed -> - }\n  row * { embed -> tp }\n}\n",
      "odd.mgc");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  options.strategy = *strategy;
  EXPECT_FALSE(FoldsToTheSamePlan(model, {}, options));
}

}  // namespace
}  // namespace mgc
