// The runner itself: what it accepts, and that it fails when it should.

#include "tests/filetest/filetest.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/text/printer.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

constexpr char kGraph[] =
    "graph @g logical (\n"
    "  data %x: f32[2]\n"
    ") {\n"
    "  %y: f32[2] = inv(%x)\n"
    "}\n";

// Stands for a pass: `rename NAME` gives the graph that name, `fail` refuses, `lower` gives text
// alone, `report OP` a graph that reports the op of its input.
absl::StatusOr<PassResult> RunPass(absl::string_view pass, absl::string_view options,
                                   const Graph& graph) {
  if (pass == "fail") return absl::InvalidArgumentError("will not [pass_c1]");
  if (pass == "lower") return PassResult{"lowered\n", absl::nullopt};
  GraphBuilder builder(pass == "rename" ? options : graph.name());
  const ValueId x = builder.AddInput("x", graph.type(0), InputKind::kData);
  if (pass == "report") {
    const ValueId y = builder.Emit(options, {x}, {}, {}, "y");
    builder.AddOutput({builder.Emit("total", {y}, {}, {}, "t"), OutputKind::kReport, "t"});
  }
  Graph result = std::move(builder).Finish();
  std::string text = PrintGraph(result);
  return PassResult{std::move(text), std::move(result)};
}

std::string Outcome(absl::string_view text) { return FileTest(text, "f.mgc", RunPass).Run(); }
std::string Update(absl::string_view text) { return FileTest(text, "f.mgc", RunPass).Update(); }

TEST(FileTestTest, RoundTripsMustPrintAsWritten) {
  EXPECT_EQ(Outcome(absl::StrCat("// test: roundtrip\n\n", kGraph)), "");
  EXPECT_THAT(Outcome(absl::StrCat("// test: roundtrip\n", kGraph, " // c\n\n")),
              HasSubstr("prints otherwise"));
  EXPECT_EQ(Outcome("// test: roundtrip\nmesh @m [tp=2]\n"), "");
  EXPECT_THAT(Outcome("// test: roundtrip\nmesh @m [ tp=2]\n"), HasSubstr("prints otherwise"));
}

TEST(FileTestTest, ErrorsMustBeExpectedOnTheirLine) {
  const std::string head = "// test: check logical\ngraph @g (data %x: f32[2]) {\n";
  EXPECT_EQ(Outcome(head + "%y = inv(%z)  // error: no value %z\n}\n"), "");
  EXPECT_EQ(Outcome(head + "%y = inv(%z)\n// error: no value %z is defined above [text_c4]\n}\n"),
            "");
  EXPECT_THAT(Outcome(head + "%y = inv(%z)\n}\n"),
              HasSubstr("f.mgc:3: unexpected error: f.mgc:3:10"));
  EXPECT_THAT(Outcome(head + "%y = inv(%z)\n} // error: no value\n"),
              HasSubstr("f.mgc:4: no such"));
  EXPECT_THAT(Outcome(head + "%y = inv(%z)  // error: other\n}\n"),
              HasSubstr("no such error: other"));
  EXPECT_EQ(Outcome(head + "%y = inv(%x) backward  // error: [logical_c2]\n}\n"), "");
  EXPECT_THAT(Outcome("// test: check local\ngraph @g () {}\n"), HasSubstr("the graph is logical"));
}

TEST(FileTestTest, ResultsMatchInOrder) {
  const auto run = [](absl::string_view expectations) {
    return Outcome(absl::StrCat("// test: check logical\n", kGraph, expectations));
  };
  EXPECT_EQ(run("// check: data   %x\n// next: ) {\n// next: inv(\n// not: sqrt\n"), "");
  EXPECT_THAT(run("// check: inv(\n// check: data %x\n"), HasSubstr("lacks `data %x`"));
  EXPECT_THAT(run("// check: data %x\n// next: inv(\n"), HasSubstr("lacks `inv(`"));
  EXPECT_THAT(run("// not: inv\n// check: }\n"), HasSubstr("must not have: inv"));
  EXPECT_THAT(run("// check: graph\n// not: inv\n"), HasSubstr("must not have: inv"));
  EXPECT_EQ(run("// check: inv\n// not: graph\n"), "");
}

TEST(FileTestTest, PassesRunByName) {
  const std::string graph = kGraph;
  EXPECT_EQ(Outcome("// test: pass rename to\n" + graph + "// check: graph @to logical\n"), "");
  EXPECT_EQ(Outcome("// test: pass fail\n// error: [pass_c1]\n" + graph), "");
  EXPECT_THAT(Outcome("// test: pass fail\n" + graph),
              HasSubstr("f.mgc:1: unexpected error: will not"));
  EXPECT_THAT(FileTest("// test: pass x\n" + graph, "f", nullptr).Run(), HasSubstr("no passes"));
}

// Both sides are evaluated: what comes out must compute what went in does.
TEST(FileTestTest, EquivalentGraphsComputeTheSame) {
  const std::string graph =
      "graph @g logical (data %x: f32[2]) {\n"
      "  %a = inv(%x)\n"
      "  %t = total(%a)\n"
      "  report \"t\" = %t\n"
      "}\n";
  EXPECT_EQ(Outcome("// test: equivalent report inv\n" + graph), "");
  EXPECT_THAT(Outcome("// test: equivalent report sqrt\n" + graph),
              HasSubstr("not equivalent: report \"t\": another element 0 of 1 (seed 20260722)"));
  EXPECT_THAT(Outcome("// test: equivalent rename g\n" + graph),
              HasSubstr("not equivalent: report \"t\": no such output"));
  EXPECT_THAT(Outcome("// test: equivalent lower\n" + graph), HasSubstr("no graph to compare"));
  EXPECT_EQ(Outcome("// test: pass lower\n" + graph + "// check: lowered\n"), "");
}

TEST(FileTestTest, MalformedTestsFail) {
  EXPECT_THAT(Outcome(""), HasSubstr("the first line must be"));
  EXPECT_THAT(Outcome("// test: dance\n"), HasSubstr("unknown test `dance`"));
  EXPECT_THAT(Outcome("// test: check\n"), HasSubstr("unknown test `check`"));
}

TEST(FileTestTest, UpdatedFilesPass) {
  const std::string texts[] = {
      absl::StrCat("// test: pass rename to\n", kGraph, "// check: old\n"),
      absl::StrCat("// test: pass fail\n", kGraph),
      "// test: check logical\ngraph @g (data %x: f32[2]) {\n%y = inv(%z)  // error: old\n"
      "%a = mul(%x)\n}\n",
      absl::StrCat("// test: check logical\n", kGraph),
  };
  for (const std::string& text : texts) {
    const std::string updated = Update(text);
    EXPECT_EQ(Outcome(updated), "") << updated;
    EXPECT_EQ(Update(updated), updated);
    EXPECT_THAT(updated, testing::Not(HasSubstr("old")));
  }
  EXPECT_EQ(Update(texts[3]), texts[3]);
}

}  // namespace
}  // namespace mgc
