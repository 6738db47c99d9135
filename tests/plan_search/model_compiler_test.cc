// What one ModelCompiler makes of a model's configurations one after another is what each gets by
// itself.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/plan/text/plan_text.h"
#include "graph/text/printer.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/config/config_flags.h"
#include "passes/graph/resize.h"
#include "passes/search/plans/model_profile.h"
#include "tests/plan_search/requests.h"

namespace mgc {
namespace {

// With 16 samples at once: ones in which layers fold alike, and one in which they do not.
std::vector<ParallelConfig> ConfigsOf(ParallelConfig config, int64_t layers) {
  std::vector<ParallelConfig> configs;
  const auto add = [&](int64_t tp, int64_t pp, const Recomputation& recompute) {
    config.tp = tp;
    config.pp = pp;
    config.world_size = 4 * tp * pp;
    config.recompute = recompute;
    configs.push_back(config);
  };
  config.micro_batch_size = 4;
  add(1, 1, RecomputeKind::kNone);
  add(2, 2, RecomputeKind::kFull);
  std::vector<RecomputeKind> by_layer(static_cast<size_t>(layers), RecomputeKind::kSelective);
  by_layer.front() = RecomputeKind::kNone;
  add(1, 2, Recomputation(by_layer));
  config.sequence_parallel = true;
  add(2, 4, RecomputeKind::kSelective);
  config.sequence_parallel = false;
  config.zero = 3;
  add(1, 1, RecomputeKind::kNone);
  return configs;
}

TEST(ModelCompiler, MakesThePlansThatEachConfigurationGetsByItself) {
  const SearchRequest request = RequestFor("gpt3-1.3b", "a100x8", 4, 16);
  const std::vector<ParallelConfig> configs =
      ConfigsOf(request.options.parallel, request.dims.layers);
  const Graph graph = request.build(configs.front()).value();
  ModelCompiler compiler(graph, request.dims);
  for (const ParallelConfig& config : configs) {
    SCOPED_TRACE(FlagsText(config));
    CompileOptions options = request.options;
    options.parallel = config;
    const absl::StatusOr<Plan> again = compiler.Compile(options);
    ASSERT_TRUE(again.ok()) << again.status();
    const absl::StatusOr<Plan> alone = Compile(graph, request.dims, options);
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(PrintPlan(*again), PrintPlan(*alone));
  }
}

// Graphs of one model differ in their samples as Resize makes them, which ModelCompilers builds on.
TEST(ModelCompilers, ModelsOfOtherSamplesAreResizedOnes) {
  for (const ModelPreset& preset : ModelPresets()) {
    SCOPED_TRACE(preset.name);
    ModelConfig config = LoadModelPreset(preset.name).value();
    config.layers = std::min<int64_t>(config.layers, 4);
    const auto model = [&](int64_t samples) {
      std::vector<std::string> notes;
      Graph graph = BuildModel(config, samples, config.seq_length, ModelOptions()).value();
      return PrepareModel(std::move(graph), &notes);
    };
    for (const int64_t samples : {1, 2, 6}) {
      for (const int64_t others : {1, 3, 8}) {
        const Graph made = model(samples);
        const Resized resized = Resize(made, SamplesOf(made), others, "T1");
        ASSERT_TRUE(resized.graph.has_value()) << resized.violations.ToString();
        EXPECT_TRUE(resized.notes.empty()) << resized.notes.front();
        EXPECT_EQ(PrintGraph(*resized.graph), PrintGraph(model(others)));
      }
    }
  }
}

TEST(ModelCompiler, IsOfOneTypeAndOptimizer) {
  const SearchRequest request = RequestFor("gpt2-tiny", "a100x8", 1, 4);
  CompileOptions options = request.options;
  ModelCompiler compiler(request.build(options.parallel).value(), request.dims);
  ASSERT_TRUE(compiler.Compile(options).ok());
  options.parallel.optimizer.name = "sgd";
  EXPECT_TRUE(absl::IsInternal(compiler.Compile(options).status()));
  options = request.options;
  options.parallel.compute_type = DType::kBF16;
  EXPECT_TRUE(absl::IsInternal(compiler.Compile(options).status()));
}

// A profile is made of the layers that a folded model keeps; it is that of all.
TEST(ModelProfile, KeptLayersTellWhatAllAreLike) {
  for (const auto& [name, tp] : {std::make_pair("gpt3-1.3b", 4), std::make_pair("llama-tiny", 2),
                                 std::make_pair("llama3-405b", 8)}) {
    SearchRequest request = RequestFor(name, "a100x8", tp, 1);
    CompileOptions options = request.options;
    for (const RecomputeKind kind : kRecomputeKinds) {
      SCOPED_TRACE(absl::StrCat(name, " ", ToString(kind)));
      options.parallel.tp = tp;
      options.parallel.recompute = kind;
      options.parallel.sequence_parallel = true;
      options.parallel.compute_type = DType::kBF16;
      options.parallel = ProfiledConfig(options.parallel);
      ModelCompiler compiler(request.build(options.parallel).value(), request.dims);
      const ModelProfile few = ProfileModel(compiler, options).value();
      const ModelProfile all = ProfileOf(StageModel(compiler, options).value(), options.machine);
      ASSERT_EQ(few.layers.size(), all.layers.size());
      EXPECT_EQ(few.stream_bytes, all.stream_bytes);
      for (size_t l = 0; l < all.layers.size(); ++l) {
        SCOPED_TRACE(absl::StrCat("layer ", l));
        const LayerProfile& a = few.layers[l];
        const LayerProfile& b = all.layers[l];
        EXPECT_EQ(a.forward_ns, b.forward_ns);
        EXPECT_EQ(a.backward_ns, b.backward_ns);
        EXPECT_EQ(a.compute_ns, b.compute_ns);
        EXPECT_EQ(a.forward_queue_ns, b.forward_queue_ns);
        EXPECT_EQ(a.backward_queue_ns, b.backward_queue_ns);
        // The norm is of a vector with an entry for each parameter.
        EXPECT_NEAR(static_cast<double>(a.update_ns), static_cast<double>(b.update_ns),
                    1e-3 * static_cast<double>(b.update_ns));
        EXPECT_EQ(a.frame_bytes, b.frame_bytes);
        EXPECT_EQ(a.param_bytes, b.param_bytes);
        EXPECT_EQ(a.grad_bytes, b.grad_bytes);
        EXPECT_EQ(a.state_bytes, b.state_bytes);
        EXPECT_EQ(a.copy_bytes, b.copy_bytes);
        EXPECT_EQ(a.transient_bytes, b.transient_bytes);
        EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace mgc
