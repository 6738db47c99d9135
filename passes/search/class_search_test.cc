#include "passes/search/class_search.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

std::vector<std::vector<std::string>> Choices(int count) {
  std::vector<std::vector<std::string>> choices;
  for (int i = 0; i < count; ++i) choices.push_back({absl::StrCat("c", i)});
  return choices;
}

// Lists place by what is in them, in any order; each class in one saves a byte and costs a
// nanosecond.
class Costs {
 public:
  explicit Costs(int64_t classes) : classes_(classes) {}

  absl::StatusOr<LayoutCost> operator()(std::vector<std::string> list, size_t most_plans) {
    ++asked_;
    absl::c_sort(list);
    if (known_.count(list) == 0 && known_.size() >= most_plans) {
      return absl::ResourceExhaustedError("no more plans");
    }
    known_.insert(list);
    const int64_t cut = static_cast<int64_t>(list.size());
    return LayoutCost{classes_ - cut, 1000 + cut};
  }

  size_t asked() const { return asked_; }
  size_t compiled() const { return known_.size(); }

 private:
  const int64_t classes_;
  std::set<std::vector<std::string>> known_;
  size_t asked_ = 0;
};

TEST(ClassSearchTest, TakesWhatTheBudgetAsksForAndNoMore) {
  Costs costs(5);
  const auto found = SearchClasses(Choices(5), /*budget=*/3, {}, std::ref(costs));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(absl::StrJoin(found->classes, " "), "c1 c0");
  EXPECT_FALSE(found->cut_short);
}

// A descent from nothing would need a thousand plans for ten classes: the other has its half.
TEST(ClassSearchTest, EachDescentHasHalfOfThePlans) {
  Costs costs(100);
  const auto found = SearchClasses(Choices(100), /*budget=*/0, {}, std::ref(costs));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->classes.size(), 100u);
  EXPECT_TRUE(found->cut_short);
  EXPECT_LE(costs.compiled(), SearchLimits().plans);
}

// What is compiled is looked at for nothing: with plans for all tables of two classes nothing is
// cut short, although most are looked at twice.
TEST(ClassSearchTest, KnownTablesTakeNoPlan) {
  Costs costs(2);
  const auto found = SearchClasses(Choices(2), /*budget=*/0, {8, 1000}, std::ref(costs));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(absl::StrJoin(found->classes, " "), "c1 c0");
  EXPECT_EQ(costs.compiled(), 4u);
  EXPECT_GT(costs.asked(), 8u);
  EXPECT_FALSE(found->cut_short);
}

// Of 300 classes in the places of each other there are millions of tables.
TEST(ClassSearchTest, LooksAtSoManyTablesAtMost) {
  const SearchLimits limits{1'000'000, 5000};
  Costs costs(300);
  const auto found = SearchClasses(Choices(300), /*budget=*/150, limits, std::ref(costs));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_LE(costs.asked(), limits.tables);
  EXPECT_TRUE(found->cut_short);
}

TEST(ClassSearchTest, RefusalsArePassedOverAndFailuresAreNot) {
  Costs costs(3);
  absl::Status status = absl::FailedPreconditionError("too slow");
  const auto without_c1 = [&](const std::vector<std::string>& list,
                              size_t most_plans) -> absl::StatusOr<LayoutCost> {
    if (absl::c_linear_search(list, "c1")) return status;
    return costs(list, most_plans);
  };
  const auto found = SearchClasses(Choices(3), /*budget=*/0, {}, without_c1);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(absl::StrJoin(found->classes, " "), "c2 c0");
  status = absl::InternalError("of ours");
  EXPECT_EQ(SearchClasses(Choices(3), /*budget=*/0, {}, without_c1).status(), status);
}

TEST(ClassSearchTest, TheFirstRefusalIsTheErrorWhereAllIsRefused) {
  const auto refuse = [](const std::vector<std::string>& list, size_t) {
    return absl::StatusOr<LayoutCost>(
        absl::InvalidArgumentError(absl::StrCat("of ", list.size(), " classes")));
  };
  EXPECT_EQ(SearchClasses(Choices(3), /*budget=*/0, {}, refuse).status().message(), "of 0 classes");
}

}  // namespace
}  // namespace mgc
