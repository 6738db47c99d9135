#include "passes/plan/schedule.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/simulate_schedule.h"
#include "passes/plan/testing/vectors.h"

namespace mgc {
namespace {

PipelineSchedule MustBuild(const ScheduleSpec& spec) {
  const absl::StatusOr<PipelineSchedule> schedule = BuildSchedule(spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *schedule : PipelineSchedule();
}

std::vector<std::string> Rules(const ScheduleSpec& spec) {
  std::vector<std::string> rules;
  for (const Diagnostic& violation : CheckSchedule(spec)) rules.push_back(violation.label);
  return rules;
}

// One letter per action: chunk 0 is `a` forward and `A` backward, chunk 1 `b` and `B`, ...
std::string Letters(const std::vector<ScheduleAction>& actions, int64_t pp) {
  std::string letters;
  for (const ScheduleAction& action : actions) {
    const bool forward = action.kind == ScheduleActionKind::kForward;
    letters.push_back(static_cast<char>((forward ? 'a' : 'A') + action.stage / pp));
  }
  return letters;
}

// Every stage sees its micro-batches ascending, forward and backward, each exactly once.
void ExpectAscending(const PipelineSchedule& schedule) {
  for (const std::vector<ScheduleAction>& actions : schedule.lists) {
    std::map<std::pair<int32_t, ScheduleActionKind>, int32_t> next;
    for (const ScheduleAction& action : actions) {
      EXPECT_EQ(action.micro_batch, (next[{action.stage, action.kind}]++)) << ToString(action);
    }
    for (const auto& [key, count] : next) EXPECT_EQ(count, schedule.micro_batches);
    EXPECT_EQ(static_cast<int64_t>(next.size()), 2 * schedule.vp);
  }
}

// The compute-only form of PyTorch's schedule files: a line per rank, actions between commas.
std::string Csv(const PipelineSchedule& schedule) {
  std::string csv;
  for (const std::vector<ScheduleAction>& actions : schedule.lists) {
    const auto print = [](std::string* out, const ScheduleAction& action) {
      absl::StrAppend(out, ToString(action));
    };
    absl::StrAppend(&csv, absl::StrJoin(actions, ",", print), "\n");
  }
  return csv;
}

TEST(ScheduleTest, MatchesThePublishedFiles) {
  const auto csv = [](const ScheduleSpec& spec) { return Csv(MustBuild(spec)); };
  EXPECT_EQ(csv({ScheduleKind::kOneFOneB, 1, 1, 4}), ReadVectors("schedule_1f1b_p1_m4.csv"));
  EXPECT_EQ(csv({ScheduleKind::kOneFOneB, 4, 1, 8}), ReadVectors("schedule_1f1b_p4_m8.csv"));
  EXPECT_EQ(csv({ScheduleKind::kGpipe, 4, 1, 8}), ReadVectors("schedule_gpipe_p4_m8.csv"));
  EXPECT_EQ(csv({ScheduleKind::kInterleaved, 4, 2, 8}),
            ReadVectors("schedule_interleaved_p4_m8_v2.csv"));
}

// Megatron's orders for explicit group sizes, and its refusals.
TEST(ScheduleTest, MatchesMegatron) {
  int accepted = 0;
  int refused = 0;
  for (const std::vector<std::string>& row : ReadVectorRows("pipeline_schedules.txt")) {
    SCOPED_TRACE(absl::StrJoin(row, " "));
    ASSERT_GE(row.size(), 5u);
    const int64_t vp = ToInt(row[1]);
    const ScheduleKind kind = vp == 0 ? ScheduleKind::kOneFOneB : ScheduleKind::kInterleaved;
    const ScheduleSpec spec{kind, ToInt(row[0]), std::max<int64_t>(vp, 1), ToInt(row[2]),
                            ToInt(row[3])};
    if (row[4] == "reject") {
      EXPECT_EQ(Rules(spec), (std::vector<std::string>{"P13"}));
      ++refused;
      continue;
    }
    const PipelineSchedule schedule = MustBuild(spec);
    ASSERT_EQ(schedule.lists.size() + 4, row.size());
    for (size_t rank = 0; rank < schedule.lists.size(); ++rank) {
      EXPECT_EQ(Letters(schedule.lists[rank], spec.pp), row[rank + 4]) << "rank " << rank;
    }
    ExpectAscending(schedule);
    ++accepted;
  }
  EXPECT_EQ(accepted, 141);
  EXPECT_EQ(refused, 155);
}

TEST(ScheduleTest, ChoosesTheSmallestGroupOfTheReference) {
  EXPECT_EQ(ChooseGroupSize(4, 7), 7);
  EXPECT_EQ(ChooseGroupSize(4, 8), 4);
  EXPECT_EQ(ChooseGroupSize(4, 9), 5);
  EXPECT_EQ(ChooseGroupSize(4, 10), 5);
  EXPECT_EQ(ChooseGroupSize(4, 11), 6);
  EXPECT_EQ(ChooseGroupSize(4, 3), 3);
  EXPECT_EQ(ChooseGroupSize(1, 5), 1);
}

// bubble / busy = (pp - 1) / (vp * M), in whole numbers, wherever M >= pp; more below it.
void ExpectIdealBubbles(const PipelineSchedule& schedule) {
  const int64_t stages = schedule.pp * schedule.vp;
  const ScheduleCosts costs{std::vector<StageCost>(stages, {3, 2, 4}), 0};
  const auto timing = SimulateSchedule(schedule, costs);
  ASSERT_TRUE(timing.ok()) << timing.status();
  for (const PipelineRankTiming& rank : timing->pipeline_ranks) {
    const int64_t got = rank.bubble * schedule.vp * schedule.micro_batches;
    const int64_t ideal = (schedule.pp - 1) * rank.busy;
    if (schedule.micro_batches >= schedule.pp || schedule.vp == 1) {
      EXPECT_EQ(got, ideal);
    } else {
      EXPECT_GT(got, ideal);
    }
  }
}

// Any number of micro-batches runs, ascending, at the ideal bubble wherever M >= pp.
TEST(ScheduleTest, EverySizeRuns) {
  for (int64_t pp = 1; pp <= 8; ++pp) {
    for (int64_t vp = 1; vp <= (pp == 1 ? 1 : 4); ++vp) {
      for (int64_t micro_batches = 1; micro_batches <= 19; ++micro_batches) {
        for (ScheduleKind kind :
             {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
          if (vp > 1 && kind != ScheduleKind::kInterleaved) continue;
          SCOPED_TRACE(absl::StrCat(ToString(kind), " pp ", pp, " vp ", vp, " M ", micro_batches));
          const PipelineSchedule schedule = MustBuild({kind, pp, vp, micro_batches});
          ExpectAscending(schedule);
          ExpectIdealBubbles(schedule);
        }
      }
    }
  }
}

TEST(ScheduleTest, NamesEveryBrokenRule) {
  const auto kInterleaved = ScheduleKind::kInterleaved;
  EXPECT_EQ(Rules({kInterleaved, 1, 2, 4}), (std::vector<std::string>{"G10"}));
  EXPECT_EQ(Rules({ScheduleKind::kOneFOneB, 2, 2, 4}), (std::vector<std::string>{"S1"}));
  EXPECT_EQ(Rules({ScheduleKind::kGpipe, 1, 2, 4}), (std::vector<std::string>{"G10", "S1"}));
  EXPECT_EQ(Rules({kInterleaved, 4, 2, 8, 3}), (std::vector<std::string>{"P13"}));
  EXPECT_EQ(Rules({kInterleaved, 4, 2, 8, 9}), (std::vector<std::string>{"P13"}));
  EXPECT_EQ(Rules({kInterleaved, 4, 2, 8, 7}), (std::vector<std::string>{"P13"}));
  EXPECT_EQ(Rules({kInterleaved, 4, 2, 8, 8}), std::vector<std::string>{});
  EXPECT_EQ(Rules({kInterleaved, 2, 2, 4}), std::vector<std::string>{});
  // A schedule without groups ignores their size.
  EXPECT_EQ(Rules({ScheduleKind::kOneFOneB, 4, 1, 2, 4}), std::vector<std::string>{});
  EXPECT_EQ(Rules({kInterleaved, 0, 0, -1, -1}),
            (std::vector<std::string>{"S0", "S0", "S0", "S0"}));
  EXPECT_EQ(Rules({kInterleaved, INT64_MAX, INT64_MAX, INT64_MAX}),
            (std::vector<std::string>{"S2"}));
  EXPECT_FALSE(BuildSchedule({kInterleaved, 1, 2, 4}).ok());
}

TEST(ScheduleTest, HintsNameTheNearestGroupSizes) {
  const Diagnostics violations = CheckSchedule({ScheduleKind::kInterleaved, 4, 2, 11, 5});
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(ToString(violations[0]),
            "micro-batches 11 over group size 5 leave a last group of 1, less than pp 4 "
            "[P13]; nearest legal: group size 6");
  const Diagnostics none = CheckSchedule({ScheduleKind::kInterleaved, 4, 2, 3, 3});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].hint, "no group size given, or micro-batches of 4 and more");
}

TEST(LeaveOutRoundsTest, OfTheMiddle) {
  const auto loops = LeaveOutRounds({ScheduleKind::kInterleaved, 4, 2, 64});
  ASSERT_TRUE(loops.has_value());
  EXPECT_EQ(loops->round, 4);
  EXPECT_EQ(loops->left_out, 11);
  EXPECT_EQ(loops->schedule.micro_batches, 20);
  // What is left over of the last round stays.
  const auto pairs = LeaveOutRounds({ScheduleKind::kOneFOneB, 4, 1, 30});
  ASSERT_TRUE(pairs.has_value());
  EXPECT_EQ(pairs->left_out, 2);
  EXPECT_EQ(pairs->schedule.micro_batches, 22);
  EXPECT_FALSE(LeaveOutRounds({ScheduleKind::kOneFOneB, 4, 1, 23}).has_value());
  EXPECT_FALSE(LeaveOutRounds({ScheduleKind::kGpipe, 4, 1, 64}).has_value());
}

}  // namespace
}  // namespace mgc
