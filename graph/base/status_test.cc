#include "graph/base/status.h"

#include <memory>
#include <utility>

#include "absl/strings/cord.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  MGC_ASSIGN_OR_RETURN(const int half, Half(n));
  int quarter = 0;
  MGC_ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::Status CheckQuarter(int n, int* calls) {
  MGC_RETURN_IF_ERROR(Quarter(n));
  ++*calls;
  MGC_RETURN_IF_ERROR(absl::OkStatus());
  ++*calls;
  return absl::OkStatus();
}

TEST(StatusTest, AssignOrReturnPassesValuesAndErrors) {
  ASSERT_TRUE(Quarter(12).ok());
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
}

TEST(StatusTest, AssignOrReturnMovesValues) {
  const auto unwrap = [](absl::StatusOr<std::unique_ptr<int>> box) -> absl::StatusOr<int> {
    MGC_ASSIGN_OR_RETURN(std::unique_ptr<int> owner, std::move(box));
    return *owner;
  };
  EXPECT_EQ(*unwrap(std::make_unique<int>(7)), 7);
}

TEST(StatusTest, ReturnIfErrorTakesStatusAndStatusOr) {
  int calls = 0;
  EXPECT_TRUE(CheckQuarter(8, &calls).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(CheckQuarter(2, &calls), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(calls, 2);
}

TEST(StatusTest, AnnotateKeepsCodeAndPayload) {
  absl::Status status = absl::NotFoundError("no axis tp");
  status.SetPayload("mgc/rule", absl::Cord("P3"));
  const absl::Status annotated = Annotate(status, "mesh");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(annotated.message(), "mesh: no axis tp");
  ASSERT_TRUE(annotated.GetPayload("mgc/rule").has_value());
  EXPECT_EQ(*annotated.GetPayload("mgc/rule"), "P3");
}

TEST(StatusTest, AnnotateLeavesOkAndEmptyTextAlone) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "mesh").ok());
  EXPECT_EQ(Annotate(absl::NotFoundError("x"), ""), absl::NotFoundError("x"));
}

TEST(StatusTest, CheckEvaluatesItsConditionOnceAndIsAStatement) {
  int evaluations = 0;
  if (evaluations == 0)
    MGC_CHECK(++evaluations == 1) << "not printed";
  else
    FAIL() << "MGC_CHECK took the else of an if around it";
  EXPECT_EQ(evaluations, 1);
}

TEST(StatusDeathTest, CheckAbortsWithPlaceConditionAndMessage) {
  const int rank = 3;
  EXPECT_DEATH(MGC_CHECK(rank < 2) << "rank " << rank,
               "graph/base/status_test.cc:[0-9]+: check failed: rank < 2 rank 3");
}

}  // namespace
}  // namespace mgc
