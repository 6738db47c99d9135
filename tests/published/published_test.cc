// Predictions stay as near to what was published as docs/planning.md says, row by row.

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/published/report.h"
#include "tests/published/rows.h"
#include "tests/published/search_rows.h"

namespace mgc {
namespace {

using testing::HasSubstr;

// What was aimed at, of the mean of all rows and of each; and of a rank's state.
constexpr double kMost = 0.30, kMostMean = 0.15, kMostState = 0.03;

std::string Page() {
  const absl::StatusOr<std::string> page = ReadFile("docs/planning.md");
  EXPECT_TRUE(page.ok()) << page.status();
  return page.value_or("");
}

// Few pipeline ranks and one plan: together they take seconds.
bool IsQuick(const PublishedRow& row) {
  return row.pp <= 8 && row.chunks.size() == 1 && row.layers <= 60;
}

TEST(PublishedTest, QuickRowsAreAsThePageSays) {
  const std::string page = Page();
  int rows = 0;
  for (const PublishedRow& row : PublishedRows()) {
    if (!IsQuick(row)) continue;
    const absl::StatusOr<PredictedRow> predicted = PredictRow(row);
    ASSERT_TRUE(predicted.ok()) << row.paper << " " << row.model << ": " << predicted.status();
    EXPECT_THAT(page, HasSubstr(LineOf(*predicted)));
    EXPECT_LE(std::abs(predicted->error()), kMost) << LineOf(*predicted);
    EXPECT_LE(std::abs(predicted->state_error()), kMostState) << LineOf(*predicted);
    ++rows;
  }
  EXPECT_GE(rows, 8);
}

TEST(PublishedTest, AllRowsAreAsThePageSays) {
  const absl::StatusOr<std::vector<PredictedRow>> rows = PredictAll();
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_LE(MeanError(*rows), kMostMean);
  EXPECT_LE(WorstError(*rows), kMost);
  for (const PredictedRow& row : *rows) {
    EXPECT_LE(std::abs(row.state_error()), kMostState) << LineOf(row);
  }
  const absl::StatusOr<std::string> report = ReportText(*rows);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Page(), HasSubstr(*report));
}

TEST(PublishedTest, AllRowsAreSearchedAsThePageSays) {
  const absl::StatusOr<std::string> searched = SearchedText();
  ASSERT_TRUE(searched.ok()) << searched.status();
  EXPECT_THAT(Page(), HasSubstr(*searched));
}

// The papers' own numbers, from which the formulas can be checked.
TEST(PublishedTest, FormulasAreThePapers) {
  for (const PublishedRow& row : PublishedRows()) {
    if (row.paper == kMtNlg) {
      const double stated = row.dp == 8 ? 126 : row.dp == 10 ? 121 : 113;
      EXPECT_NEAR(MeasuredTflops(row), stated, 1) << row.dp;
    }
    if (row.paper != kSequence || row.recompute == RecomputeKind::kFull) continue;
    const double utilization = row.dp > 1            ? 54.2
                               : row.model == "22B"  ? 41.5
                               : row.model == "175B" ? 51.4
                               : row.model == "530B" ? 56.0
                                                     : 56.3;
    EXPECT_NEAR(100 * MeasuredTflops(row) / 312, utilization, 0.25) << row.model << " " << row.dp;
  }
}

}  // namespace
}  // namespace mgc
