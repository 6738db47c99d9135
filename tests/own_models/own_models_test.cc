// Models as users write them, with names and shapes of their own: each compiles to a plan that is
// proved, or is refused before in words of the model. A file's comments say which:
//
//   // proved: tp=2 dp=2         compiled with these options (tests/filetest/pass_runner.h)
//   // classes: tp=2             the same with rows for the model's dim classes, which keep to
//                                their budget of parameter bytes (passes/search/class_layout.h)
//   // proved: samples=3         with other sizes than it was written with
//   // refused: pp=2: text       refused as infeasible; the error contains the text

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/check.h"
#include "graph/plan/proto/plan_wire.h"
#include "graph/plan/text/plan_text.h"
#include "graph/text/parser.h"
#include "graph/verify/verify.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/resize.h"
#include "passes/search/class_layout.h"
#include "tests/filetest/pass_runner.h"

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

// OK where the plan is proved; it reads back from text and bytes.
absl::Status CompileAndProve(const Graph& written, absl::string_view options, bool by_classes) {
  CompileOptions compile;
  MGC_ASSIGN_OR_RETURN(compile.parallel, ParseParallel(options, written));
  const ParallelConfig& parallel = compile.parallel;
  const Resized resized =
      Resize(written, parallel.micro_batch_size * DataParallelSize(parallel), parallel.seq_length);
  MGC_RETURN_IF_ERROR(resized.violations.ToStatus());
  const Graph& model = *resized.graph;
  compile.machine = MachinePresets().front();
  if (by_classes) {
    MGC_ASSIGN_OR_RETURN(compile.strategy, StrategyByClasses(model, compile));
  }
  MGC_ASSIGN_OR_RETURN(Plan plan, Compile(model, ModelDims(), compile));
  MGC_RETURN_IF_ERROR(ProvePlan(&plan));
  const std::string text = PrintPlan(plan);
  MGC_ASSIGN_OR_RETURN(const Plan read, ParsePlan(text, "text"));
  EXPECT_EQ(PrintPlan(read), text);
  const absl::StatusOr<Plan> from_bytes = DeserializePlan(SerializePlan(plan), "bytes");
  if (!from_bytes.ok()) return from_bytes.status();
  EXPECT_EQ(PrintPlan(*from_bytes), text);
  return absl::OkStatus();
}

class OwnModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(OwnModelsTest, IsProvedOrRefusedByName) {
  const std::string file = "tests/own_models/" + GetParam() + ".mgc";
  const absl::StatusOr<std::string> text = ReadFile(file);
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::StatusOr<Graph> read = ParseGraph(*text, file);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(CheckGraph(*read).ok()) << CheckGraph(*read);
  const Graph model = NameDims(*read);  // as mgc-compile reads it
  int tried = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    SCOPED_TRACE(line);
    if (absl::ConsumePrefix(&line, "// proved:")) {
      EXPECT_EQ(CompileAndProve(model, line, /*by_classes=*/false), absl::OkStatus());
    } else if (absl::ConsumePrefix(&line, "// classes:")) {
      EXPECT_EQ(CompileAndProve(model, line, /*by_classes=*/true), absl::OkStatus());
    } else if (absl::ConsumePrefix(&line, "// refused:")) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(line, absl::MaxSplits(": ", 1));
      const absl::Status status = CompileAndProve(model, parts.first, /*by_classes=*/false);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(parts.second)));
    } else {
      continue;
    }
    ++tried;
  }
  EXPECT_GT(tried, 0) << "the file says nothing of what is expected";
}

INSTANTIATE_TEST_SUITE_P(Files, OwnModelsTest, testing::ValuesIn(ModelFiles()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mgc
