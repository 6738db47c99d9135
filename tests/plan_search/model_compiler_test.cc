// What one ModelCompiler makes of a model's configurations one after another is what each gets by
// itself.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/plan/text/plan_text.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/config/config_flags.h"
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

}  // namespace
}  // namespace mgc
