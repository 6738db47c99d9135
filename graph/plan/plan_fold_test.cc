#include "graph/plan/plan_fold.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

Action Forward(int64_t micro_batch, int64_t frame) {
  Action action;
  action.ref = {ActionKind::kForward, 0, micro_batch};
  action.frame = frame;
  action.waits = {{TransferKind::kRecvForward, 0, micro_batch}};
  return action;
}
Action Backward(int64_t micro_batch, int64_t frame) {
  Action action;
  action.ref = {ActionKind::kBackward, 0, micro_batch};
  action.frame = frame;
  return action;
}

std::string Text(absl::Span<const Action> actions) {
  return absl::StrJoin(actions, " ", [](std::string* out, const Action& action) {
    absl::StrAppend(out, action.ref.chunk, LetterOf(action.ref.kind), action.ref.micro_batch, "@",
                    action.frame, ",", action.input);
    for (const TransferRef& ref : action.waits) absl::StrAppend(out, "w", ref.micro_batch);
  });
}

size_t Stored(const std::vector<Repeat<Action>>& repeats) {
  size_t entries = 0;
  for (const Repeat<Action>& repeat : repeats) entries += repeat.body.size();
  return entries;
}

std::vector<Action> Unfolded(const std::vector<Repeat<Action>>& repeats) {
  std::vector<Action> actions;
  int64_t room = kMaxPlanEntries;
  for (const Repeat<Action>& repeat : repeats) EXPECT_TRUE(Unfold(repeat, &room, &actions));
  return actions;
}

// 1F1B of one stage with `depth` micro-batches in flight, each with a frame of a ring.
std::vector<Action> OneFOneB(int64_t depth, int64_t micro_batches) {
  std::vector<Action> actions;
  for (int64_t m = 0; m < micro_batches + depth; ++m) {
    if (m < micro_batches) actions.push_back(Forward(m, m % depth * 64));
    if (m >= depth - 1 && m - depth + 1 < micro_batches) {
      actions.push_back(Backward(m - depth + 1, (m - depth + 1) % depth * 64));
    }
  }
  return actions;
}

TEST(PlanFoldTest, SteadyStatesAreStoredOnce) {
  for (int64_t depth : {1, 2, 5, 64}) {
    const std::vector<Action> actions = OneFOneB(depth, 512);
    const std::vector<Repeat<Action>> repeats = Fold(actions);
    // Warm-up, one period, the end.
    EXPECT_LE(Stored(repeats), 6u) << depth;
    EXPECT_EQ(Text(Unfolded(repeats)), Text(actions)) << depth;
  }
}

TEST(PlanFoldTest, ActionsWithoutMicroBatchDoNotMove) {
  std::vector<Action> actions;
  for (int64_t m = 0; m < 6; ++m) {
    actions.push_back(Forward(m, 0));
    Action prepare;
    prepare.ref = {ActionKind::kPrepare, 0, 0};
    actions.push_back(prepare);
  }
  const std::vector<Repeat<Action>> repeats = Fold(actions);
  EXPECT_EQ(Stored(repeats), 2u);
  EXPECT_EQ(Text(Unfolded(repeats)), Text(actions));
}

TEST(PlanFoldTest, OtherAddressesAndWaitsAreKept) {
  std::vector<Action> actions = OneFOneB(2, 32);
  actions[20].frame = 1;
  actions[33].waits.clear();
  actions[40].waits.push_back({TransferKind::kRecvForward, 0, 3});
  EXPECT_EQ(Text(Unfolded(Fold(actions))), Text(actions));
}

TEST(PlanFoldTest, AnyListUnfoldsToItself) {
  const int seed = 30;
  std::mt19937 random(seed);
  for (int n = 0; n < 2000; ++n) {
    std::vector<Action> actions;
    for (uint32_t i = random() % 20; i > 0; --i) {
      actions.push_back(random() % 2 == 0 ? Forward(random() % 3, random() % 2)
                                          : Backward(random() % 3, random() % 2));
    }
    ASSERT_EQ(Text(Unfolded(Fold(actions))), Text(actions)) << "seed " << seed << " case " << n;
  }
}

TEST(PlanFoldTest, AddressesComeRoundInCyclesOfTheirOwn) {
  std::vector<Action> actions;
  for (int64_t m = 0; m < 30; ++m) {
    actions.push_back(Forward(m, m % 5));
    actions.back().input = m % 7;
    actions.back().output = 3;
    actions.push_back(Backward(m, m % 3));
  }
  const std::vector<Repeat<Action>> repeats = Fold(actions);
  ASSERT_EQ(repeats.size(), 1u);
  EXPECT_EQ(repeats[0].body.size(), 2u);
  EXPECT_EQ(repeats[0].times, 30);
  EXPECT_EQ(repeats[0].shift, 1);
  ASSERT_EQ(repeats[0].cycles.size(), 3u);
  EXPECT_EQ(repeats[0].cycles[0].addresses, std::vector<int64_t>({0, 1, 2, 3, 4}));
  EXPECT_EQ(repeats[0].cycles[1].which, 1);
  EXPECT_EQ(repeats[0].cycles[1].addresses, std::vector<int64_t>({0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(repeats[0].cycles[2].entry, 1);
  EXPECT_EQ(repeats[0].cycles[2].addresses, std::vector<int64_t>({0, 1, 2}));
  EXPECT_EQ(Text(Unfolded(repeats)), Text(actions));
}

// Takes minutes if periods are tried one by one.
TEST(PlanFoldTest, ALateChangeOfAnAddressIsFoundQuickly) {
  constexpr int64_t kCount = 1 << 19;
  std::vector<Action> actions;
  for (int64_t m = 0; m < kCount; ++m) actions.push_back(Forward(m, m == kCount - 1 ? 1 : 0));
  const std::vector<Repeat<Action>> repeats = Fold(actions);
  EXPECT_EQ(Stored(repeats), 1u);
  EXPECT_EQ(Unfolded(repeats).back().frame, 1);
}

TEST(PlanFoldTest, TransfersFoldTheSameWay) {
  std::vector<Transfer> transfers;
  for (int64_t m = 0; m < 12; ++m) {
    Transfer transfer;
    transfer.ref = {TransferKind::kRecvForward, 0, m};
    transfer.anchor = {ActionKind::kForward, 0, m - 1};
    transfer.address = m % 4;
    transfers.push_back(transfer);
  }
  transfers[11].bytes = 1;
  const std::vector<Repeat<Transfer>> repeats = Fold(transfers);
  ASSERT_EQ(repeats.size(), 2u);
  EXPECT_EQ(repeats[0].times, 11);
  std::vector<Transfer> unfolded;
  int64_t room = kMaxPlanEntries;
  for (const Repeat<Transfer>& repeat : repeats) EXPECT_TRUE(Unfold(repeat, &room, &unfolded));
  ASSERT_EQ(unfolded.size(), 12u);
  for (int64_t m = 0; m < 12; ++m) {
    EXPECT_EQ(unfolded[static_cast<size_t>(m)].ref.micro_batch, m);
    EXPECT_EQ(unfolded[static_cast<size_t>(m)].anchor.micro_batch, m - 1);
    EXPECT_EQ(unfolded[static_cast<size_t>(m)].address, m % 4);
    EXPECT_EQ(unfolded[static_cast<size_t>(m)].bytes, m == 11 ? 1 : 0);
  }
}

TEST(PlanFoldTest, CyclesOfNoAddressAreRefused) {
  const Repeat<Action> repeat{{Forward(0, 0)}, 2, 1, {{0, 0, {1, 2}}}};
  const auto unfolds = [](const Repeat<Action>& damaged) {
    std::vector<Action> actions;
    int64_t room = kMaxPlanEntries;
    return Unfold(damaged, &room, &actions);
  };
  EXPECT_TRUE(unfolds(repeat));
  Repeat<Action> damaged = repeat;
  damaged.cycles[0].entry = 1;
  EXPECT_FALSE(unfolds(damaged));
  damaged.cycles[0].entry = -1;
  EXPECT_FALSE(unfolds(damaged));
  damaged = repeat;
  damaged.cycles[0].which = kMaxAddresses;
  EXPECT_FALSE(unfolds(damaged));
  damaged.cycles[0].which = -1;
  EXPECT_FALSE(unfolds(damaged));
  damaged = repeat;
  damaged.cycles[0].addresses.clear();
  EXPECT_FALSE(unfolds(damaged));
}

TEST(PlanFoldTest, ListsThatAreTooLongAreRefused) {
  std::vector<Action> actions;
  int64_t room = 7;
  Repeat<Action> repeat{{Forward(0, 0), Backward(0, 0)}, 2, 1, {}};
  repeat.body[1].waits.resize(2);
  EXPECT_FALSE(Unfold(repeat, &room, &actions)) << "ten entries and refs";
  repeat.times = 0;
  EXPECT_FALSE(Unfold(repeat, &room, &actions));
  repeat.times = 1;
  repeat.shift = int64_t{1} << 62;
  EXPECT_FALSE(Unfold(repeat, &room, &actions));
  repeat.shift = 1;
  repeat.body[0].ref.micro_batch = int64_t{1} << 62;
  EXPECT_FALSE(Unfold(repeat, &room, &actions));
  repeat.times = int64_t{1} << 62;
  EXPECT_FALSE(Unfold(repeat, &room, &actions));
  EXPECT_TRUE(actions.empty());
  EXPECT_EQ(room, 7);
  repeat.times = 1;
  repeat.body[0].ref.micro_batch = 0;
  EXPECT_TRUE(Unfold(repeat, &room, &actions));
  EXPECT_EQ(room, 2);
}

}  // namespace
}  // namespace mgc
