#include "graph/base/diagnostic.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace mgc {
namespace {

Diagnostic At(std::string place, std::string label, std::string text) {
  Diagnostic diagnostic{std::move(label), std::move(text)};
  diagnostic.place = std::move(place);
  return diagnostic;
}

TEST(DiagnosticTest, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(ToString(Diagnostic{"P7", "first is 0", "1"}), "first is 0 [P7]; nearest legal: 1");
  EXPECT_EQ(ToString(Diagnostic{"G1", "no hint", ""}), "no hint [G1]");
  EXPECT_EQ(ToString(Diagnostic{"", "has one [op_c1]", "", "f:1:2", "  note: why"}),
            "f:1:2: has one [op_c1]\n  note: why");
}

TEST(DiagnosticTest, EscapesBytesThatDoNotPrintOnce) {
  EXPECT_EQ(ToString(Diagnostic{"P3", "layout \x1b[2J\n", "\x07"}),
            "layout \\x1B[2J\\x0A [P3]; nearest legal: \\x07");
  EXPECT_EQ(ToString(Diagnostic{"P3", "layout \\x1B", "", "a\nb", "one\ntwo\x1b"}),
            "a\\x0Ab: layout \\x1B [P3]\none\ntwo\\x1B");
}

TEST(DiagnosticTest, LeavesQuotesAlone) {
  EXPECT_EQ(ToString(Diagnostic{"M10", "the model's \"128\" positions", "the model's 128"}),
            "the model's \"128\" positions [M10]; nearest legal: the model's 128");
}

TEST(DiagnosticsTest, NothingIsOk) {
  EXPECT_TRUE(Diagnostics().ToStatus().ok());
  EXPECT_EQ(Diagnostics().ToString(), "");
  EXPECT_FALSE(Diagnostics().Has(""));
}

TEST(DiagnosticsTest, KeepsSomeAndCountsTheRest) {
  Diagnostics list(/*most=*/3, /*most_of_a_label=*/2);
  for (int i = 0; i < 4; ++i) list.Add({"a1", "x"});
  EXPECT_FALSE(list.full());
  list.Add(At("class 1", "b1", "y"));
  list.Add({"b1", "z"});
  EXPECT_TRUE(list.full());
  EXPECT_TRUE(list.Has("b1"));
  EXPECT_FALSE(list.Has("c1"));
  EXPECT_EQ(list.ToString(), "x [a1]\nx [a1]\nclass 1: y [b1]\n... and 3 more");

  Diagnostics all;
  all.LeaveOut(1);
  EXPECT_FALSE(all.empty());
  all.Append(list);
  const absl::Status status = all.ToStatus(absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "x [a1]\nx [a1]\nclass 1: y [b1]\n... and 4 more");
}

TEST(DiagnosticsTest, ShowsWhatIsDifferentRatherThanMoreOfTheSame) {
  Diagnostics list;
  for (int i = 0; i < 1000; ++i) list.Add("a1", "here", "x");
  list.Add("b1", "there", "y");
  EXPECT_EQ(list.size(), Diagnostics::kMostOfALabel + 1);
  EXPECT_EQ(ToString(list[Diagnostics::kMostOfALabel]), "there: y [b1]");
  EXPECT_EQ(list.left_out(), 1000 - Diagnostics::kMostOfALabel);
}

TEST(FileDiagnosticsTest, InTheOrderOfTheirPlaces) {
  FileDiagnostics found("a\nb");
  found.Note("of nothing");
  EXPECT_TRUE(found.ToStatus().ok());
  found.Add({3, 1}, "c2", "later");
  found.Note("why");
  found.Note({1, 4}, "first defined");
  found.Add({2, 10}, "", "right [c1]");
  found.Add({2, 9}, "c1", "left");
  EXPECT_EQ(found.ToStatus().message(),
            "a\\x0Ab:2:9: left [c1]\n"
            "a\\x0Ab:2:10: right [c1]\n"
            "a\\x0Ab:3:1: later [c2]\n"
            "  note: why\n"
            "  note: first defined at a\\x0Ab:1:4");
}

TEST(FileDiagnosticsTest, NotesOfWhatIsLeftOutGoWithIt) {
  FileDiagnostics found("f");
  for (size_t i = 0; i < Diagnostics::kMost + 4; ++i) found.Add({1, 1}, "c1", "x");
  found.Note("gone");
  found.LeaveOut(2);
  const std::string text(found.ToStatus().message());
  EXPECT_EQ(text.substr(text.size() - 28), "f:1:1: x [c1]\n... and 6 more");
}

}  // namespace
}  // namespace mgc
