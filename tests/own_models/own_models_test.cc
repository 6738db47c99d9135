// Models as users write them, with names and shapes of their own: each compiles to a plan that is
// proved, or is refused before in words of the model. A file's comments say which:
//
//   // proved: tp=2 dp=2         compiled with these options (tests/filetest/pass_runner.h)
//   // trained: tp=2 dp=2        proved, and its losses and gradients are those of one rank
//   // classes: tp=2             proved with rows for the model's dim classes, which keep to their
//                                budget of parameter bytes (passes/search/class_layout.h)
//   // trained by classes: tp=2  both
//   // cuts: tp=2                tp cuts at least half of the bytes of the parameters
//   // cuts by classes: tp=2     likewise
//   // proved: samples=3         with other sizes than it was written with
//   // strategy: uneven labels  lines of the strategy for all but what is by classes; without them
//                                it is Megatron's
//   // refused: pp=2: text       refused as infeasible; the error contains the text

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "graph/base/status.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/graph/resize.h"
#include "passes/search/class_layout.h"
#include "tests/filetest/pass_runner.h"
#include "tests/own_models/compile_own_model.h"
#include "tests/same_loss/train_samples.h"

namespace mgc {
namespace {

using testing::HasSubstr;

std::vector<std::string> ModelFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/own_models")) {
    if (entry.path().extension() == ".mgc") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The rows for a model's dim classes, which keep to its budget of parameter bytes.
absl::StatusOr<StrategySpec> StrategyByClasses(const Graph& model, const CompileOptions& options) {
  MGC_ASSIGN_OR_RETURN(const ClassLayout layout, LayOutByClasses(model, ModelDims(), options));
  MGC_ASSIGN_OR_RETURN(const std::vector<ClassChoice> choices,
                       ClassChoices(model, ModelDims(), options));
  EXPECT_LE(layout.cost.parameter_bytes, ParameterBudget(model, choices, options.parallel.tp));
  return layout.strategy;
}

// A model as it is written, with its strategy; none: by classes.
struct Written {
  Graph model;
  absl::optional<StrategySpec> strategy;
};

absl::StatusOr<Plan> CompileFor(const Written& written, const ParallelConfig& parallel) {
  CompileOptions compile;
  compile.parallel = parallel;
  const Resized resized = Resize(
      written.model, parallel.micro_batch_size * DataParallelSize(parallel), parallel.seq_length);
  MGC_RETURN_IF_ERROR(resized.violations.ToStatus());
  const Graph& model = *resized.graph;
  compile.machine = MachinePresets().front();
  if (written.strategy.has_value()) {
    compile.strategy = *written.strategy;
  } else {
    MGC_ASSIGN_OR_RETURN(compile.strategy, StrategyByClasses(model, compile));
  }
  return Compile(model, ModelDims(), compile);
}

// OK where the plan is proved; it reads back from text and bytes.
absl::StatusOr<Plan> CompileAndProve(const Written& written, absl::string_view options) {
  MGC_ASSIGN_OR_RETURN(const ParallelConfig parallel, ParseParallel(options, written.model));
  MGC_ASSIGN_OR_RETURN(Plan plan, CompileFor(written, parallel));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  const std::string text = PrintPlan(plan);
  MGC_ASSIGN_OR_RETURN(const Plan read, ParsePlan(text, "text"));
  EXPECT_EQ(PrintPlan(read), text);
  const absl::StatusOr<Plan> from_bytes = DeserializePlan(SerializePlan(plan), "bytes");
  if (!from_bytes.ok()) return from_bytes.status();
  EXPECT_EQ(PrintPlan(*from_bytes), text);
  return plan;
}

// Trains the plan beside the same model on one rank.
void ExpectTrainsAsOneRank(const Written& written, absl::string_view options, const Plan& plan) {
  constexpr int64_t kSteps = 2;
  constexpr uint64_t kSeed = 1234;
  const absl::StatusOr<ParallelConfig> parallel = ParseParallel(options, written.model);
  ASSERT_TRUE(parallel.ok()) << parallel.status();
  const absl::StatusOr<Plan> one =
      CompileFor({written.model, DefaultStrategy()}, OnOneRank(*parallel));
  ASSERT_TRUE(one.ok()) << one.status();
  const absl::StatusOr<TrainResult> expected = TrainOnSamples(*one, kSteps, kSeed);
  const absl::StatusOr<TrainResult> found = TrainOnSamples(plan, kSteps, kSeed);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(Difference(*expected, *found), "");
}

// The bytes of parameters that tp cuts at all, of a plan without pipeline, and all bytes.
std::pair<int64_t, int64_t> CutBytes(const Plan& plan) {
  std::pair<int64_t, int64_t> bytes;
  const AxisSet tp = plan.mesh.Find("tp").AsSet();
  for (const PlanClass& rank_class : plan.classes) {
    for (const HeldBlock& held : rank_class.blocks) {
      for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
        const int64_t size = entry.type.NumElements() * SizeOf(entry.type.dtype);
        bytes.second += size;
        if (entry.sharding.SplitAxes().Intersects(tp)) bytes.first += size;
      }
    }
  }
  return bytes;
}

// A line of what is expected; false where it says nothing.
bool TryLine(const Written& written, absl::string_view line) {
  if (absl::ConsumePrefix(&line, "// refused:")) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    const absl::Status status = CompileAndProve(written, parts.first).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(parts.second)));
    return true;
  }
  for (const auto& [word, by_classes] :
       {std::make_pair("// proved:", false), std::make_pair("// classes:", true),
        std::make_pair("// trained:", false), std::make_pair("// trained by classes:", true),
        std::make_pair("// cuts:", false), std::make_pair("// cuts by classes:", true)}) {
    absl::string_view options = line;
    if (!absl::ConsumePrefix(&options, word)) continue;
    const absl::StatusOr<Plan> plan =
        CompileAndProve(by_classes ? Written{written.model, absl::nullopt} : written, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return true;
    if (absl::StartsWith(word, "// trained")) ExpectTrainsAsOneRank(written, options, *plan);
    if (absl::StartsWith(word, "// cuts")) {
      const auto [cut, all] = CutBytes(*plan);
      EXPECT_GE(2 * cut, all);
    }
    return true;
  }
  return false;
}

class OwnModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(OwnModelsTest, IsProvedOrRefusedByName) {
  const absl::StatusOr<OwnModel> own = ReadOwnModel(GetParam());
  ASSERT_TRUE(own.ok()) << own.status();
  const Written written{own->model, own->strategy};
  int tried = 0;
  for (absl::string_view line : absl::StrSplit(own->text, '\n')) {
    SCOPED_TRACE(line);
    tried += TryLine(written, line) ? 1 : 0;
  }
  EXPECT_GT(tried, 0) << "the file says nothing of what is expected";
}

INSTANTIATE_TEST_SUITE_P(Files, OwnModelsTest, testing::ValuesIn(ModelFiles()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mgc
