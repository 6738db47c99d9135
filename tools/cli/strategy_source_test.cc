#include "tools/cli/strategy_source.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "graph/base/file.h"
#include "graph/text/parser.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(StrategySourceTest, ThePresetNeedsNoFileAndLeavesNoTrace) {
  const absl::StatusOr<StrategySpec> spec = LoadStrategy(std::string("megatron"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(StrategyPath(std::string("megatron")), absl::nullopt);
  EXPECT_TRUE(OptionsOf(std::string("megatron"), *spec).empty());
  EXPECT_TRUE(OptionsOf(absl::nullopt, *LoadStrategy(absl::nullopt)).empty());
}

TEST(StrategySourceTest, AFileIsRecordedLineByLine) {
  const std::string path = testing::TempDir() + "/mine.mgc";
  ASSERT_TRUE(
      WriteFileAtomically(path, "strategy @mine { row * { a -> tp } row * { b -> dp } }").ok());
  const absl::StatusOr<StrategySpec> spec = LoadStrategy(path);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(StrategyPath(path), path);
  const PlanOptions expected = {{"--strategy", path},
                                {"strategy.1", "row * { a -> tp }"},
                                {"strategy.2", "row * { b -> dp }"}};
  EXPECT_EQ(OptionsOf(path, *spec), expected);
}

TEST(StrategySourceTest, ErrorsAreLocated) {
  const std::string path = testing::TempDir() + "/bad.mgc";
  ASSERT_TRUE(WriteFileAtomically(path, "strategy @mine {\n  row * { a -> tp }\n").ok());
  const absl::Status status = LoadStrategy(path).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "bad.mgc:2:")) << status;
  const absl::Status missing = LoadStrategy(std::string("megatrn")).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_TRUE(absl::StrContains(missing.message(), "did you mean megatron?")) << missing;
}

constexpr char kUnnamed[] = R"(graph @g logical (
  param %up: f32[16,64] {init="normal", std=0.2},
  param %down: f32[64,16] {init="normal", std=0.2},
  data %x: f32[8,16],
  data %weights: f32[8]
) {
  %h = matmul(%x, %up) {spec="b k, k n -> b n"}
  %y = matmul(%h, %down) {spec="b k, k n -> b n"}
  %loss = sum_squares(%y)
  %count = total(%weights)
  loss "loss" = %loss
  report "count" = %count
})";

CompileOptions OptionsOf(int64_t tp) {
  CompileOptions options;
  options.parallel.tp = tp;
  options.parallel.world_size = tp;
  options.parallel.micro_batch_size = 8;
  options.parallel.global_batch_size = 8;
  options.machine = *FindMachinePreset("h100x8");
  return options;
}

TEST(StrategySourceTest, TheDefaultStaysWhereNothingCanBeCutAndReplicationIsAllowed) {
  std::vector<std::string> notes;
  const Graph model = PrepareModel(*ParseGraph(kUnnamed, "unnamed.mgc"), &notes);
  absl::optional<std::string> name;
  CompileOptions options = OptionsOf(7);
  const absl::Status refused = LayOutIfUnnamed(model, {}, &name, &options).status();
  EXPECT_TRUE(absl::StrContains(refused.message(), "tp 4, 8, or --allow-replicated")) << refused;
  options.parallel.allow_replicated = true;
  const absl::StatusOr<std::string> kept = LayOutIfUnnamed(model, {}, &name, &options);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, "");
  EXPECT_EQ(name, absl::nullopt);
  EXPECT_EQ(options.strategy.name, DefaultStrategy().name);
  // Who asks for classes has what there is of them.
  name = kClassStrategy;
  const absl::StatusOr<std::string> asked = LayOutIfUnnamed(model, {}, &name, &options);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_TRUE(absl::StrContains(*asked, "row * { batch -> dp }")) << *asked;
}

TEST(StrategySourceTest, TheNoteSaysWhatALayoutIsShortOf) {
  ClassLayout layout;
  layout.strategy = ClassStrategy({"up#1"});
  layout.budget = 1024;
  layout.cost.parameter_bytes = 1024;
  EXPECT_EQ(NoteOn(layout),
            "laid out by dim classes, with the rows of least predicted time; to change them, edit "
            "them and pass them with --strategy FILE:\n"
            "strategy @classes {\n"
            "  split dp in zero_groups\n"
            "  row * { batch -> dp, \"up#1\" -> tp }\n"
            "  store states -> dp.1 when zero\n"
            "  store gradients -> dp.1 when zero2\n"
            "  store parameters -> dp.1 when zero3\n"
            "}");
  layout.cut_short = true;
  layout.plans = 1000;
  layout.cost.parameter_bytes = 3072;
  EXPECT_TRUE(absl::StrContains(
      NoteOn(layout),
      "of least predicted time among 1000 plans, before all were tried; each rank holds 2.0 KiB "
      "of parameters more than 1.1 times its share of those that tp can cut; to change them"))
      << NoteOn(layout);
}

}  // namespace
}  // namespace mgc
