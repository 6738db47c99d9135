#include "passes/config/rank_groups.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/sha256.h"
#include "passes/plan/testing/vectors.h"

namespace mgc {
namespace {

using RankLists = std::vector<std::vector<int64_t>>;

// The form whose hash the vectors give: `[[0,1],[2,3]]`.
std::string CanonicalText(const RankLists& groups) {
  const auto print = [](std::string* out, const std::vector<int64_t>& group) {
    absl::StrAppend(out, "[", absl::StrJoin(group, ","), "]");
  };
  return absl::StrCat("[", absl::StrJoin(groups, ",", print), "]");
}

ParallelConfig Sizes(int64_t world_size, int64_t tp, int64_t cp, int64_t ep, int64_t etp,
                     int64_t pp, std::string order) {
  ParallelConfig config;
  config.world_size = world_size;
  config.tp = tp;
  config.cp = cp;
  config.ep = ep;
  config.etp = etp;
  config.pp = pp;
  config.order = std::move(order);
  return config;
}

std::vector<std::string> Rules(const ParallelConfig& config) {
  std::vector<std::string> rules;
  for (const Diagnostic& violation : CheckRankGroups(config)) rules.push_back(violation.label);
  return rules;
}

std::map<std::string, RankLists> MustBuild(const ParallelConfig& config) {
  std::map<std::string, RankLists> groups;
  const auto kinds = BuildRankGroups(config);
  EXPECT_TRUE(kinds.ok()) << kinds.status();
  if (!kinds.ok()) return groups;
  for (const RankGroupKind& kind : *kinds) groups[kind.name] = kind.groups;
  return groups;
}

TEST(Sha256Test, MatchesThePublishedExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(RankGroupsTest, SixteenRanksByHand) {
  const auto groups = MustBuild(Sizes(16, 2, 1, 1, 0, 4, kDefaultAxisOrder));
  EXPECT_EQ(groups.size(), 11u);
  EXPECT_EQ(groups.at("tp").back(), (std::vector<int64_t>{14, 15}));
  EXPECT_EQ(groups.at("dp"),
            (RankLists{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups.at("embedding"), (RankLists{{0, 12}, {1, 13}, {2, 14}, {3, 15}}));
  EXPECT_EQ(groups.at("position-embedding"), (RankLists{{0}, {1}, {2}, {3}}));
}

// All dense kinds of Megatron's own functions, for every sizes and order in the vectors. Expert
// grids that Megatron refuses are refused, and no others.
TEST(RankGroupsTest, MatchesMegatron) {
  int compared = 0;
  int refused = 0;
  for (const std::vector<std::string>& row : ReadVectorRows("rank_groups.txt")) {
    ASSERT_EQ(row.size(), 9u);
    ParallelConfig config = Sizes(ToInt(row[0]), ToInt(row[1]), ToInt(row[2]), ToInt(row[3]),
                                  ToInt(row[4]), ToInt(row[5]), row[6]);
    SCOPED_TRACE(absl::StrJoin(row, " "));
    const bool agree = row[7] == "agree";
    if (config.ep > 1) {
      const std::vector<std::string> rules = Rules(config);
      EXPECT_EQ(std::count(rules.begin(), rules.end(), "G6"), agree ? 0 : 1);
      refused += rules.empty() ? 0 : 1;
      // The dense groups do not depend on the experts.
      config.ep = 1;
    }
    const auto kinds = BuildRankGroups(config);
    ASSERT_TRUE(kinds.ok()) << kinds.status();
    ASSERT_EQ(kinds->size() * 6, row[8].size());
    for (size_t i = 0; i < kinds->size(); ++i) {
      EXPECT_EQ(Sha256Hex(CanonicalText((*kinds)[i].groups)).substr(0, 6), row[8].substr(6 * i, 6))
          << (*kinds)[i].name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 805 * 11);
  EXPECT_GT(refused, 85);  // 85 cases disagree with ep > 1; G5 alone refuses some more
}

TEST(RankGroupsTest, NamesEveryBrokenRule) {
  EXPECT_EQ(Rules(Sizes(12, 4, 2, 1, 0, 1, kDefaultAxisOrder)), (std::vector<std::string>{"G1"}));
  EXPECT_EQ(Rules(Sizes(12, 2, 1, 4, 4, 1, kDefaultAxisOrder)), (std::vector<std::string>{"G2"}));
  EXPECT_EQ(Rules(Sizes(10, 4, 1, 3, 1, 1, kDefaultAxisOrder)),
            (std::vector<std::string>{"G1", "G2"}));
  EXPECT_EQ(Rules(Sizes(8, 2, 1, 1, 0, 1, "tp-pp")), (std::vector<std::string>{"G3"}));
  EXPECT_EQ(Rules(Sizes(8, 2, 1, 2, 2, 1, "tp-dp-pp")), (std::vector<std::string>{"G3"}));
  EXPECT_EQ(Rules(Sizes(16, 2, 1, 2, 2, 2, "tp-cp-ep-pp-dp")),
            (std::vector<std::string>{"G5", "G6"}));
  EXPECT_EQ(Rules(Sizes(16, 2, 1, 4, 0, 2, kDefaultAxisOrder)), std::vector<std::string>{});
  EXPECT_EQ(Rules(Sizes(16, 2, 2, 4, 1, 2, kDefaultAxisOrder)), std::vector<std::string>{});
}

TEST(RankGroupsTest, ExpertRulesNeedExperts) {
  // etp 3 divides nothing here, but without experts nobody asks.
  EXPECT_EQ(Rules(Sizes(16, 2, 1, 1, 3, 2, "tp-cp-ep-pp-dp")), std::vector<std::string>{});
  EXPECT_EQ(Rules(Sizes(16, 2, 1, 2, 3, 2, kDefaultAxisOrder)), (std::vector<std::string>{"G2"}));
}

TEST(RankGroupsTest, HintsAreLegal) {
  const Diagnostics violations = CheckRankGroups(Sizes(10, 4, 1, 1, 0, 1, "tp-dp-pp"));
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(ToString(violations[0]),
            "world size 10 is not divisible by tp 4 * pp 1 * cp 1 = 4 [G1]; nearest legal: "
            "world size 8, 12");
  const Diagnostics order = CheckRankGroups(Sizes(16, 2, 1, 2, 2, 2, "pp-tp-ep-dp"));
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(order[0].hint, "order tp-ep-dp-pp");
}

TEST(RankGroupsTest, HintsOneOrderForAllMissingAxes) {
  const auto check = [](ParallelConfig config, const std::string& order) {
    const Diagnostics violations = CheckRankGroups(config);
    ASSERT_FALSE(violations.empty());
    for (const Diagnostic& violation : violations) {
      EXPECT_EQ(violation.hint, "order " + order) << ToString(violation);
    }
    config.order = order;
    EXPECT_EQ(Rules(config), std::vector<std::string>{});
  };
  check(Sizes(8, 2, 2, 2, 0, 1, "tp-pp"), "tp-cp-ep-dp-pp");
  check(Sizes(8, 2, 1, 1, 0, 2, "pp-tp"), "pp-tp-dp");
  check(Sizes(16, 2, 1, 2, 0, 2, "pp-tp"), "tp-ep-dp-pp");
}

TEST(RankGroupsTest, RefusesValuesOutOfRange) {
  EXPECT_EQ(Rules(Sizes(0, 1, 1, 1, 0, 1, kDefaultAxisOrder)), (std::vector<std::string>{"G0"}));
  EXPECT_EQ(Rules(Sizes(8, -2, 1, 1, 0, 0, kDefaultAxisOrder)),
            (std::vector<std::string>{"G0", "G0", "G0"}));  // etp follows tp
  EXPECT_EQ(Rules(Sizes(INT64_MAX, INT64_MAX, 1, 1, 1, 1, kDefaultAxisOrder)),
            (std::vector<std::string>{"G0", "G0"}));
  EXPECT_EQ(Rules(Sizes(8, 2, 1, 1, 0, 1, "tp-dp-xx")), (std::vector<std::string>{"G0"}));
  EXPECT_FALSE(CheckAxisOrder("").ok());
  EXPECT_FALSE(CheckAxisOrder("tp--pp").ok());
  EXPECT_FALSE(CheckAxisOrder("tp-dp-tp").ok());
  EXPECT_TRUE(CheckAxisOrder("pp-tp").ok());
  EXPECT_FALSE(BuildRankGroups(Sizes(10, 4, 1, 1, 0, 1, kDefaultAxisOrder)).ok());
}

}  // namespace
}  // namespace mgc
