#include "passes/plan/order.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/step_walk.h"
#include "gtest/gtest.h"
#include "passes/plan/place_frames.h"
#include "passes/plan/schedule.h"
#include "passes/plan/testing/pipeline.h"
#include "passes/plan/testing/vectors.h"

namespace mgc {
namespace {

// Frames side by side, from the addresses they were given.
int64_t LiveFrames(const Program& program) {
  int64_t low = INT64_MAX;
  int64_t high = 0;
  for (const Action& action : program.compute) {
    if (action.frame < 0) continue;
    low = std::min(low, action.frame);
    high = std::max(high, action.frame + kFrame);
  }
  return (high - low) / kFrame;
}

// What a walk through two steps is stuck at; empty if it comes to its end.
std::string StuckAt(const Plan& plan, bool eval) {
  StepVisitor nothing;
  return WalkSteps(plan, eval, 2, &nothing);
}

TEST(OrderTest, NeverWaitsForItself) {
  int cases = 0;
  for (const Costs& costs : {kFree, kFastNetwork, kEven, kSlowNetwork}) {
    for (bool collectives : {false, true}) {
      for (const Pipeline& pipeline : Pipelines(costs, collectives)) {
        SCOPED_TRACE(NameOf(pipeline));
        const OrderedPipeline ordered = MustOrder(pipeline);
        EXPECT_EQ(StuckAt(ordered.plan, false), "");
        EXPECT_EQ(StuckAt(ordered.plan, true), "");
        if (HasFailure()) return;
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 1000);
}

TEST(OrderTest, RefusesAStepOfCenturies) {
  constexpr Costs kGlacier = {"glacier", 5e8, 1e30, 0};  // 16 years an op
  StagedPlan plan = Staged({ScheduleKind::kOneFOneB, 4, 1, 64, kGlacier, true});
  PipelineSchedule schedule = *BuildSchedule({ScheduleKind::kOneFOneB, 4, 1, 64});
  const absl::Status status =
      Order({std::move(plan), std::move(schedule)}, MachineOf(kGlacier)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("machine glacier [S4]"), absl::string_view::npos) << status;
}

// The first stage's backward before the forward whose gradient it takes.
TEST(OrderTest, RefusesAScheduleThatWaitsForItself) {
  StagedPlan plan = Staged({ScheduleKind::kOneFOneB, 2, 1, 4, kFastNetwork});
  PipelineSchedule schedule = *BuildSchedule({ScheduleKind::kOneFOneB, 2, 1, 4});
  std::vector<ScheduleAction>& first = schedule.lists[0];
  const auto backward =
      std::find(first.begin(), first.end(), ScheduleAction{0, ScheduleActionKind::kBackward, 0});
  ASSERT_NE(backward, first.end());
  std::rotate(first.begin(), backward, backward + 1);
  const absl::Status status =
      Order({std::move(plan), std::move(schedule)}, MachineOf(kFastNetwork)).status();
  EXPECT_EQ(status, absl::FailedPreconditionError("the schedule waits for itself: pipeline rank 0 "
                                                  "never runs 0B0 [order_c1]"));
}

// (pp - 1) / (vp M) of the busy time, in whole numbers, wherever the group size is legal.
TEST(OrderTest, BubbleIsTheIdealAtEqualCosts) {
  for (int64_t pp : {1, 2, 4, 8}) {
    for (int64_t vp : {1, 2, 3}) {
      if (pp == 1 && vp > 1) continue;
      for (int64_t micro_batches : {1, 2, 4, 5, 7, 8, 12, 16}) {
        for (ScheduleKind kind :
             {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
          if (vp > 1 && kind != ScheduleKind::kInterleaved) continue;
          if (vp > 1 && micro_batches < pp) continue;  // never ideal
          const Pipeline pipeline{kind, pp, vp, micro_batches};
          SCOPED_TRACE(NameOf(pipeline));
          const OrderedPipeline ordered = MustOrder(pipeline);
          const int64_t busy = 3 * kUnit * vp * micro_batches;
          EXPECT_EQ(ordered.step.busy_ns, std::vector<int64_t>(pp, busy));
          EXPECT_EQ((ordered.step.makespan_ns - busy) * vp * micro_batches, (pp - 1) * busy);
        }
      }
    }
  }
}

// Frames alive at one time, through the addresses they were given, are those of Megatron's
// schedules: makespan and peaks of the outside vectors.
TEST(OrderTest, PeakFramesAreMegatrons) {
  int cases = 0;
  for (const std::vector<std::string>& row : ReadVectorRows("pipeline_bubbles.txt")) {
    SCOPED_TRACE(absl::StrCat("pp ", row[0], " vp ", row[1], " M ", row[2], " g ", row[3]));
    ASSERT_EQ(row.size(), 6u);
    const int64_t vp = ToInt(row[1]);
    Pipeline pipeline{vp == 0 ? ScheduleKind::kOneFOneB : ScheduleKind::kInterleaved, ToInt(row[0]),
                      std::max<int64_t>(vp, 1), ToInt(row[2])};
    pipeline.group_size = vp == 0 ? 0 : ToInt(row[3]);
    if (pipeline.pp * pipeline.vp * pipeline.micro_batches > 512) continue;
    const OrderedPipeline ordered = MustOrder(pipeline);
    EXPECT_EQ(ordered.step.makespan_ns, ToInt(row[4]) * kUnit);
    const std::vector<int64_t> peaks = ToInts(row[5]);
    ASSERT_EQ(peaks.size(), ordered.plan.classes.size());
    for (size_t c = 0; c < peaks.size(); ++c) {
      EXPECT_EQ(LiveFrames(ordered.plan.classes[c].train), peaks[c]) << "rank " << c;
    }
    ++cases;
  }
  EXPECT_GT(cases, 50);
}

// One pool of slots per class, not a fixed mailbox per channel.
TEST(OrderTest, PoolsStaySmall) {
  const OrderedPipeline ordered = MustOrder({ScheduleKind::kInterleaved, 4, 4, 32, kEven, true});
  for (size_t c = 0; c < ordered.pools.size(); ++c) {
    // Inputs are kept until their backward, one slot per live frame, and a few are on their way.
    const int64_t frames = LiveFrames(ordered.plan.classes[c].train);
    EXPECT_LE(ordered.pools[c], frames + 6) << "class " << c;
  }
}

template <typename Entry>
size_t StoredEntries(const std::vector<Entry>& entries) {
  size_t stored = 0;
  for (const Repeat<Entry>& repeat : Fold(entries)) stored += repeat.body.size();
  return stored;
}

// However many micro-batches there are, a fast stage keeps pace with a slow one behind it.
TEST(OrderTest, ASlowLastStageHoldsTheOthersBack) {
  for (bool collectives : {false, true}) {
    Pipeline pipeline{ScheduleKind::kOneFOneB, 4, 1, 16, kEven, collectives};
    pipeline.slow_end = true;
    const OrderedPipeline few = MustOrder(pipeline);
    pipeline.micro_batches = 512;
    const OrderedPipeline many = MustOrder(pipeline);
    EXPECT_EQ(many.pools, few.pools);
    for (const PlanClass& c : many.plan.classes) {
      for (const Program* program : {&c.train, &c.eval}) {
        EXPECT_LT(StoredEntries(program->compute), 64u) << "class " << c.coordinate;
        EXPECT_LT(StoredEntries(program->transfers), 64u) << "class " << c.coordinate;
      }
    }
    EXPECT_EQ(StuckAt(many.plan, true), "");
  }
}

int64_t ReadersCount(const Program& program) {
  size_t count = program.compute.size() + program.transfers.size();
  for (const Action& action : program.compute) count += action.waits.size();
  for (const Transfer& transfer : program.transfers) {
    count += transfer.after.size() + transfer.after_transfers.size();
  }
  return static_cast<int64_t>(count);
}

// A plan of as many actions as a schedule may have is not too long to be read.
TEST(OrderTest, NoScheduleGivesMoreThanReadersTake) {
  for (ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved}) {
    for (const Costs& costs : {kFree, kEven, kSlowNetwork}) {
      Pipeline pipeline{kind, 8, kind == ScheduleKind::kInterleaved ? 2 : 1, 128, costs, true};
      const OrderedPipeline ordered = MustOrder(pipeline);
      int64_t entries = 0;
      for (const PlanClass& c : ordered.plan.classes) {
        entries += ReadersCount(c.train) + ReadersCount(c.eval);
      }
      const int64_t actions = 2 * pipeline.pp * pipeline.vp * pipeline.micro_batches;
      EXPECT_LE(entries * (kMaxScheduleActions / actions), kMaxPlanEntries) << NameOf(pipeline);
    }
  }
}

TEST(OrderTest, TheSameInputGivesTheSameLists) {
  const Pipeline pipeline{ScheduleKind::kInterleaved, 4, 2, 8, kEven, true};
  const OrderedPipeline a = MustOrder(pipeline);
  const OrderedPipeline b = MustOrder(pipeline);
  EXPECT_EQ(a.step.makespan_ns, b.step.makespan_ns);
  for (size_t c = 0; c < a.plan.classes.size(); ++c) {
    const std::vector<Transfer>& first = a.plan.classes[c].train.transfers;
    const std::vector<Transfer>& second = b.plan.classes[c].train.transfers;
    ASSERT_EQ(first.size(), second.size());
    for (size_t t = 0; t < first.size(); ++t) {
      EXPECT_EQ(first[t].address, second[t].address);
      EXPECT_EQ(first[t].ref.micro_batch, second[t].ref.micro_batch);
      EXPECT_EQ(first[t].issued, second[t].issued);
    }
  }
}

OrderedPlan OrderAsSearched(const Pipeline& pipeline, bool all_rounds) {
  const ScheduleSpec spec = {pipeline.kind, pipeline.pp, pipeline.vp, pipeline.micro_batches,
                             pipeline.group_size};
  OrderScope scope;
  scope.transfers = false;
  absl::optional<ShorterSchedule> shorter;
  if (!all_rounds) shorter = LeaveOutRounds(spec);
  return Order({Staged(pipeline), BuildSchedule(spec).value()}, MachineOf(pipeline.costs), nullptr,
               scope, shorter)
      .value();
}

// The same time, the same parts of it and the same memory as with all rounds.
void ExpectSameStep(const OrderedPlan& whole, const OrderedPlan& shorter) {
  EXPECT_EQ(whole.makespan_ns, shorter.makespan_ns);
  EXPECT_EQ(whole.predicted_step_ns, shorter.predicted_step_ns);
  for (size_t c = 0; c < whole.classes.size(); ++c) {
    const ClassTime& a = whole.classes[c].time;
    const ClassTime& b = shorter.classes[c].time;
    EXPECT_EQ(a.busy_ns, b.busy_ns);
    EXPECT_EQ(a.update_ns, b.update_ns);
    EXPECT_EQ(a.transfers_ns, b.transfers_ns);
    EXPECT_EQ(a.exposed, b.exposed);
    EXPECT_EQ(whole.classes[c].pool, shorter.classes[c].pool);
    const auto frames = [&](const OrderedPlan& plan) {
      return PlaceFrames(plan.staged.classes[c].train.chunks, true, plan.classes[c].train).bytes;
    };
    EXPECT_EQ(frames(whole), frames(shorter));
  }
}

TEST(OrderTest, RoundsThatRepeatNeedNotBeSimulated) {
  int steady = 0;
  int all = 0;
  for (const Costs& costs : {kFree, kFastNetwork, kEven, kSlowNetwork}) {
    for (const bool collectives : {false, true}) {
      for (const int64_t pp : {1, 2, 3, 5}) {
        for (const int64_t vp : {1, 2, 3}) {
          for (const int64_t rest : {0, 1, 2}) {
            const int64_t micro_batches = 11 * pp + std::min(rest, vp == 1 ? rest : 0);
            Pipeline pipeline{ScheduleKind::kOneFOneB, pp, vp, micro_batches, costs, collectives};
            if (vp > 1) pipeline.kind = ScheduleKind::kInterleaved;
            if (vp > 1 && pp == 1) continue;
            pipeline.slow_end = rest == 1;
            SCOPED_TRACE(NameOf(pipeline));
            const OrderedPlan shorter = OrderAsSearched(pipeline, false);
            ExpectSameStep(OrderAsSearched(pipeline, true), shorter);
            if (HasFailure()) return;
            ++all;
            if (shorter.counted_rounds > 0) ++steady;
          }
        }
      }
    }
  }
  std::cout << steady << " of " << all << " are steady" << std::endl;
  EXPECT_GT(steady, all / 2);
}

}  // namespace
}  // namespace mgc
