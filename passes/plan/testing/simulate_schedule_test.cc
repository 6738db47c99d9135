#include "passes/plan/testing/simulate_schedule.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/plan/testing/vectors.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads `0F3`; transfers do not occur in the files used here.
ScheduleAction ReadAction(absl::string_view text) {
  const size_t letter = text.find_first_of("FBIW");
  EXPECT_NE(letter, absl::string_view::npos) << text;
  ScheduleAction action;
  action.stage = static_cast<int32_t>(ToInt(text.substr(0, letter)));
  action.micro_batch = static_cast<int32_t>(ToInt(text.substr(letter + 1)));
  action.kind = text[letter] == 'F'   ? ScheduleActionKind::kForward
                : text[letter] == 'B' ? ScheduleActionKind::kBackward
                : text[letter] == 'I' ? ScheduleActionKind::kInputGradient
                                      : ScheduleActionKind::kWeightGradient;
  return action;
}

PipelineSchedule ReadSchedule(const std::string& csv, int64_t vp, int64_t micro_batches) {
  PipelineSchedule schedule{0, vp, micro_batches, {}};
  for (absl::string_view row : absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    std::vector<ScheduleAction> actions;
    for (absl::string_view word : absl::StrSplit(row, ',')) actions.push_back(ReadAction(word));
    schedule.lists.push_back(actions);
  }
  schedule.pp = static_cast<int64_t>(schedule.lists.size());
  return schedule;
}

ScheduleCosts EqualCosts(int64_t stages, int64_t forward = 1, int64_t transfer = 0) {
  return {std::vector<StageCost>(stages, {forward, forward, forward}), transfer};
}

std::vector<int64_t> Peaks(const ScheduleTiming& timing) {
  std::vector<int64_t> peaks;
  for (const PipelineRankTiming& rank : timing.pipeline_ranks)
    peaks.push_back(rank.peak_activations);
  return peaks;
}

ScheduleTiming MustSimulate(const PipelineSchedule& schedule, const ScheduleCosts& costs) {
  const absl::StatusOr<ScheduleTiming> timing = SimulateSchedule(schedule, costs);
  EXPECT_TRUE(timing.ok()) << timing.status();
  return timing.ok() ? *timing : ScheduleTiming{};
}

// Makespans (forward 1, backward 2 per rank's share of layers) and peaks of an outside simulator.
TEST(SimulateScheduleTest, MatchesOutsideTimesAndPeaks) {
  for (const std::vector<std::string>& row : ReadVectorRows("pipeline_bubbles.txt")) {
    SCOPED_TRACE(absl::StrJoin(row, " "));
    ASSERT_EQ(row.size(), 6u);
    const int64_t vp = ToInt(row[1]);
    const auto schedule =
        BuildSchedule({vp == 0 ? ScheduleKind::kOneFOneB : ScheduleKind::kInterleaved,
                       ToInt(row[0]), std::max<int64_t>(vp, 1), ToInt(row[2]), ToInt(row[3])});
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const ScheduleTiming timing = MustSimulate(*schedule, EqualCosts(schedule->pp * schedule->vp));
    EXPECT_EQ(timing.makespan, ToInt(row[4]));
    EXPECT_EQ(Peaks(timing), ToInts(row[5]));
  }
}

TEST(SimulateScheduleTest, KnowsGpipesPeak) {
  const auto schedule = BuildSchedule({ScheduleKind::kGpipe, 4, 1, 8});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const ScheduleTiming timing = MustSimulate(*schedule, EqualCosts(4));
  EXPECT_EQ(timing.makespan, 33);
  EXPECT_THAT(Peaks(timing), ElementsAre(8, 8, 8, 8));
  for (const PipelineRankTiming& rank : timing.pipeline_ranks) {
    EXPECT_EQ(rank.busy, 24);
    EXPECT_EQ(rank.bubble, 9);
    EXPECT_EQ(rank.starts.size(), 16u);
    EXPECT_TRUE(std::is_sorted(rank.starts.begin(), rank.starts.end()));
  }
}

// Orders that are not built here, with split backwards too; stages of an interleaved schedule cost
// half a unit, so times there are doubled.
TEST(SimulateScheduleTest, PlaysOtherSchedules) {
  const ScheduleTiming zbh1 =
      MustSimulate(ReadSchedule(ReadVectors("schedule_zbh1_p4_m8.csv"), 1, 8), EqualCosts(4));
  EXPECT_EQ(zbh1.makespan, 27);
  EXPECT_EQ(zbh1.pipeline_ranks[0].bubble, 3);
  EXPECT_THAT(Peaks(zbh1), ElementsAre(4, 4, 4, 4));
  const ScheduleTiming split = MustSimulate(
      ReadSchedule(ReadVectors("schedule_interleaved_zb_p4_m8_v2.csv"), 2, 8), EqualCosts(8));
  EXPECT_EQ(split.makespan, 51);
  EXPECT_THAT(Peaks(split), ElementsAre(8, 8, 8, 8));
  const ScheduleTiming breadth =
      MustSimulate(ReadSchedule(ReadVectors("schedule_bfs_p4_m8_v2.csv"), 2, 8), EqualCosts(8));
  EXPECT_EQ(breadth.makespan, 57);
  EXPECT_THAT(Peaks(breadth), ElementsAre(16, 16, 16, 16));
}

// A transfer of 5 hundredths of a stage's forward, in hundredths.
TEST(SimulateScheduleTest, TransfersTakeTime) {
  const auto time = [](ScheduleKind kind) {
    const auto schedule = BuildSchedule({kind, 4, 1, 8});
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return MustSimulate(*schedule, EqualCosts(4, 100, 5)).makespan;
  };
  EXPECT_EQ(time(ScheduleKind::kGpipe), 3330);
  EXPECT_EQ(time(ScheduleKind::kOneFOneB), 3380);
}

TEST(SimulateScheduleTest, FindsDeadlocks) {
  // Rank 1 wants micro-batch 1 first, rank 0 sends it only after the backward of 0.
  const PipelineSchedule crossed = ReadSchedule("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n", 1, 2);
  const auto timing = SimulateSchedule(crossed, EqualCosts(2));
  EXPECT_EQ(timing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(timing.status().message()),
              HasSubstr("rank 0 at 0B0 (action 1), rank 1 at 1F1 (action 0)"));
  const auto early = SimulateSchedule(ReadSchedule("0W0,0F0,0I0\n", 1, 1), EqualCosts(1));
  EXPECT_EQ(early.status().code(), absl::StatusCode::kFailedPrecondition);
}

// Interleaving by groups of pp although M mod pp is neither 0 nor pp or more: a cycle.
TEST(SimulateScheduleTest, AShortLastGroupCanHang) {
  PipelineSchedule schedule{4, 3, 5, {}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    std::vector<ScheduleAction> forwards;
    std::vector<ScheduleAction> list;
    for (int32_t first : {0, 4}) {
      for (int32_t chunk = 0; chunk < 3; ++chunk) {
        for (int32_t mb = first; mb < std::min(first + 4, 5); ++mb) {
          forwards.push_back({chunk * 4 + rank, ScheduleActionKind::kForward, mb});
        }
      }
    }
    const size_t warmup = std::min<size_t>(2 * (3 - rank) + 8, forwards.size());
    for (size_t i = 0; i < forwards.size() + warmup; ++i) {
      if (i < forwards.size()) list.push_back(forwards[i]);
      if (i < warmup) continue;
      const ScheduleAction& mirrored = forwards[i - warmup];
      list.push_back({(2 - mirrored.stage / 4) * 4 + rank, ScheduleActionKind::kBackward,
                      mirrored.micro_batch});
    }
    schedule.lists.push_back(list);
  }
  EXPECT_EQ(SimulateSchedule(schedule, EqualCosts(12)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SimulateScheduleTest, RefusesWhatIsNoSchedule) {
  const auto code = [](const std::string& csv, int64_t micro_batches, int64_t stages) {
    return SimulateSchedule(ReadSchedule(csv, 1, micro_batches), EqualCosts(stages))
        .status()
        .code();
  };
  EXPECT_EQ(code("0F0,0B0\n", 1, 1), absl::StatusCode::kOk);
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code("0F0\n", 1, 1), kInvalid);
  EXPECT_EQ(code("0F0,0I0\n", 1, 1), kInvalid);
  EXPECT_EQ(code("0F0,0B0,0B0\n", 1, 1), kInvalid);
  EXPECT_EQ(code("0F0,0B0,0I0,0W0\n", 1, 1), kInvalid);
  EXPECT_EQ(code("0F0,0I0,0B0\n", 1, 1), kInvalid);
  EXPECT_EQ(code("0F0,0B0,0F1,0B1\n", 1, 1), kInvalid);
  EXPECT_EQ(code("1F0,0B0\n1F0,1B0\n", 1, 2), kInvalid);
  EXPECT_EQ(code("0F0,0B0\n", 1, 2), kInvalid);
  EXPECT_EQ(code("", 1, 1), kInvalid);
  PipelineSchedule huge{1, INT64_MAX, INT64_MAX, {{}}};
  EXPECT_EQ(SimulateSchedule(huge, EqualCosts(1)).status().code(), kInvalid);
  const auto negative = SimulateSchedule(ReadSchedule("0F0,0B0\n", 1, 1), EqualCosts(1, -1));
  EXPECT_EQ(negative.status().code(), kInvalid);
}

}  // namespace
}  // namespace mgc
