#include "tools/cli/strategy_source.h"

#include <string>

#include "absl/strings/match.h"
#include "graph/base/file.h"
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

}  // namespace
}  // namespace mgc
