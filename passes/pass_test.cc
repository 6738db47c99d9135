#include "passes/pass.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/plan/testing/text_graph.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr char kModel[] = R"(graph @g logical layers=1 (
  param %w: f32[embed=4,embed=4],
  data %x: f32[batch=2,embed=4]
) {
  %h = matmul(%x, %w) {spec="b k, k n -> b n"} layer embedding
  %l: f64[] = total(%h) layer 0
  %n: f64[] = total(%x) layer 0
  loss "loss" = %l
  report "count" = %n
})";

PassForm Model() { return StepGraphs{ReadGraph(kModel), absl::nullopt, {}}; }

TEST(PassTest, ListIsOneChainOfLevels) {
  PassLevel level = PassLevel::kLogical;
  for (const PassEntry& pass : CompilePasses()) {
    EXPECT_EQ(NameOf(pass.from), NameOf(level)) << pass.name;
    level = pass.to;
  }
  EXPECT_EQ(NameOf(level), "plan");
  ASSERT_GT(AllPasses().size(), CompilePasses().size());
  for (const PassEntry& by_name : AllPasses().subspan(CompilePasses().size())) {
    EXPECT_EQ(NameOf(by_name.from), "logical") << by_name.name;
  }
}

TEST(PassTest, OfTwoOfANameTheLevelDecides) {
  const Graph model = ReadGraph(kModel);
  const absl::StatusOr<PassContext> context = ContextOf({}, model);
  ASSERT_TRUE(context.ok()) << context.status();
  PassForm form = Model();
  for (const char* name : {"simplify", "differentiate", "simplify"}) {
    absl::StatusOr<PassForm> next = RunPassByName(AllPasses(), name, std::move(form), *context, {});
    ASSERT_TRUE(next.ok()) << next.status();
    form = *std::move(next);
  }
  EXPECT_EQ(NameOf(LevelOf(form)), "training");
  EXPECT_EQ(RunPassByName(AllPasses(), "order", Model(), *context, {}).status().message(),
            "pass order takes the scheduled level, this is logical [pass_c1]");
  EXPECT_EQ(
      RunPassByName(AllPasses(), "odrer", Model(), *context, {}).status().message(),
      absl::StrCat("unknown pass `odrer`; known: ", absl::StrJoin(PassNames(AllPasses()), ", ")));
}

// What a pass must not do: leave a graph that its level's check refuses.
absl::StatusOr<PassForm> Spoil(PassForm form, const PassContext& /*context*/) {
  GraphBuilder builder(std::get<StepGraphs>(form).train);
  builder.SetSharding(0, Sharding::Whole(2));
  return StepGraphs{std::move(builder).Finish(), absl::nullopt, {}};
}

TEST(PassTest, OutputIsCheckedAgainstItsLevel) {
  const PassEntry spoil = {"spoil", "", PassLevel::kLogical, PassLevel::kLogical, Spoil};
  RunOptions options;
  const absl::Status status = RunPass(spoil, Model(), {}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("after pass spoil: %w: "));
  EXPECT_THAT(status.message(), HasSubstr("[logical_c1]"));
  options.check = false;
  EXPECT_TRUE(RunPass(spoil, Model(), {}, options).ok());
}

TEST(PassTest, FinishedPassesAreReportedAndMayEndTheRun) {
  std::vector<std::string> names;
  CompileOptions options;
  options.machine = MachinePresets().front();
  options.run.after_pass = [&](const FinishedPass& pass) {
    EXPECT_GE(pass.ns, 0);
    names.emplace_back(pass.name);
    return pass.name != "schedule";
  };
  const absl::Status status =
      Compile(ReadGraph(kModel), {1, 4, 1, 1, 4, 4, 4, 1}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(status.message(), "stopped after schedule");
  std::vector<std::string> expected;
  for (const PassEntry& pass : CompilePasses()) {
    expected.emplace_back(pass.name);
    if (pass.name == "schedule") break;
  }
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace mgc
