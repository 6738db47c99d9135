// Boards made by hand: who is named, and what a board that is no board does.

#include "runtime/watch/waits.h"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/run/testing/chain_plan.h"
#include "runtime/watch/board.h"
#include "runtime/watch/watchdog.h"

namespace mgc {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Memory for a board, which begins at a line of the cache.
class BoardMemory {
 public:
  explicit BoardMemory(int64_t bytes) : lines_(static_cast<size_t>(bytes) / sizeof(Line)) {}
  char* data() { return lines_[0].bytes; }
  size_t size() const { return lines_.size() * sizeof(Line); }

 private:
  struct alignas(64) Line {
    char bytes[64] = {};
  };
  std::vector<Line> lines_;
};
constexpr int64_t kNow = 1000 * kSecond;

// A chain of two stages with two ranks each, a process for each stage.
class WaitsTest : public testing::Test {
 protected:
  WaitsTest()
      : plan_(ChainPlan(Options())),
        map_(*ProcessMap::Create(4, 2)),
        memory_(Board::Bytes(4, 2)),
        board_(memory_.data(), map_),
        waits_(plan_, board_) {
    for (int p = 0; p < 2; ++p) {
      board_.Enter(p, 70 + p, "host", kNow);
      board_.SetStage(p, ProcessStage::kRunning, kNow);
    }
  }

  static ChainOptions Options() {
    ChainOptions options;
    options.tp = options.pp = 2;
    return options;
  }
  RankProgress& rank(int64_t r) { return board_.ranks()[static_cast<size_t>(r)]; }
  // A rank that computes the first instruction of its first action.
  void Computes(int64_t r, int64_t for_ns) {
    rank(r).activity.set(RankActivity::kComputing);
    rank(r).since_ns.set(kNow - for_ns);
    rank(r).inside.set(true);
    rank(r).steps.set(1);
    // Before its first item.
    rank(r).item_action.set(0);
    rank(r).item_call.set(r < 2 ? 1 : 0);
    rank(r).transfer.set(r < 2 ? -1 : 0);
  }
  // A rank of the second stage that waits for its first input.
  void WaitsForInput(int64_t r, int64_t for_ns) {
    rank(r).activity.set(RankActivity::kWaiting);
    rank(r).since_ns.set(kNow - for_ns);
    rank(r).steps.set(1);
    rank(r).transfer.set(0);
    rank(r).in_flight.set(true);
  }

  Plan plan_;
  ProcessMap map_;
  BoardMemory memory_;
  Board board_;
  Waits waits_;
};

TEST_F(WaitsTest, NamesTheRankThatComputesAndThoseThatWait) {
  Computes(0, 64 * kSecond);
  rank(0).usual_ns.set(kSecond / 10);
  Computes(1, kSecond);
  WaitsForInput(2, 65 * kSecond);
  WaitsForInput(3, kSecond);
  EXPECT_EQ(waits_.FindCulprit(kNow, 100 * kSecond).rank, -1);
  const Culprit culprit = waits_.FindCulprit(kNow, 60 * kSecond);
  EXPECT_EQ(culprit.rank, 0);
  EXPECT_TRUE(
      absl::StrContains(waits_.Sentence(culprit), "rank 0 (pid 70, host) has been computing 0F0 "))
      << waits_.Sentence(culprit);
  EXPECT_TRUE(absl::StrContains(waits_.Sentence(culprit),
                                " for 64.0 s, usually 0.1 s; ranks 2, 3 wait for it"))
      << waits_.Sentence(culprit);
}

// An action that has always taken long may take long.
TEST_F(WaitsTest, AllowsWhatIsUsual) {
  Computes(0, 64 * kSecond);
  rank(0).usual_ns.set(20 * kSecond);
  WaitsForInput(2, 64 * kSecond);
  EXPECT_EQ(waits_.FindCulprit(kNow, 60 * kSecond).rank, -1);
}

// The writer of a checkpoint stands still, others wait for those that it holds.
TEST_F(WaitsTest, NamesARankWhoseCheckpointIsNotWritten) {
  rank(0).activity.set(RankActivity::kHeld);
  rank(0).since_ns.set(kNow - 64 * kSecond);
  rank(0).steps.set(1);
  EXPECT_EQ(waits_.FindCulprit(kNow, 100 * kSecond).rank, -1);
  const Culprit culprit = waits_.FindCulprit(kNow, 60 * kSecond);
  EXPECT_EQ(culprit.rank, 0);
  EXPECT_TRUE(absl::StrContains(waits_.Sentence(culprit),
                                "rank 0 (pid 70, host) has waited for its checkpoint to be "
                                "written, which has not come on for 64.0 s"))
      << waits_.Sentence(culprit);
}

TEST_F(WaitsTest, NamesAProcessThatIsNotHeardOf) {
  board_.process(1).heartbeat_ns.set(kNow - 4 * kSecond);
  Computes(0, 0);
  Computes(1, 0);
  WaitsForInput(2, 4 * kSecond);
  WaitsForInput(3, 4 * kSecond);
  const Culprit culprit = waits_.FindCulprit(kNow, 3 * kSecond);
  EXPECT_EQ(culprit.process, 1);
  EXPECT_TRUE(absl::StartsWith(waits_.Sentence(culprit),
                               "rank 2 (pid 71, host) has not answered for 4.0 s"))
      << waits_.Sentence(culprit);
}

TEST_F(WaitsTest, NamesAProcessThatOthersWaitForBetweenSteps) {
  board_.SetStage(0, ProcessStage::kAgreeing, kNow - 5 * kSecond);
  board_.SetStage(1, ProcessStage::kRunning, kNow - 5 * kSecond);
  EXPECT_EQ(waits_.FindCulprit(kNow, 6 * kSecond).rank, -1);
  EXPECT_EQ(waits_.FindCulprit(kNow, 3 * kSecond).process, 1);
  // Nobody waits: whatever takes so long may take it.
  board_.SetStage(0, ProcessStage::kRunning, kNow - 5 * kSecond);
  EXPECT_EQ(waits_.FindCulprit(kNow, 3 * kSecond).rank, -1);
}

// Messages that move are progress, however slow the connection is.
TEST_F(WaitsTest, AMessageThatMovesIsNoHang) {
  for (int64_t r : {2, 3}) WaitsForInput(r, 9 * kSecond);
  for (int64_t r : {0, 1}) {
    rank(r).activity.set(RankActivity::kWaiting);
    rank(r).since_ns.set(kNow - 9 * kSecond);
    rank(r).steps.set(1);
    rank(r).transfer.set(0);  // 0SEND_F0
    rank(r).in_flight.set(true);
  }
  for (int64_t r : {0, 2}) rank(r).moved_ns.set(kNow - kSecond);
  EXPECT_EQ(waits_.FindCulprit(kNow, 3 * kSecond).rank, -1);
  for (int64_t r : {0, 2}) rank(r).moved_ns.set(kNow - 8 * kSecond);
  EXPECT_GE(waits_.FindCulprit(kNow, 3 * kSecond).rank, 0);
}

// All members stand at an exchange, but the workers of one of their processes compute for others.
TEST_F(WaitsTest, AnExchangeThatLacksAWorkerIsNoHang) {
  for (int64_t r : {1, 3}) {
    WaitsForInput(r, 9 * kSecond);  // 0SEND_F0 and 0RECV_F0
  }
  for (int64_t working : {0, 2}) {
    Computes(working, kSecond);
    EXPECT_EQ(waits_.FindCulprit(kNow, 3 * kSecond).rank, -1) << working;
    Computes(working, 9 * kSecond);
    EXPECT_EQ(waits_.FindCulprit(kNow, 3 * kSecond).rank, working);
    rank(working).activity.set(RankActivity::kReady);
    rank(working).since_ns.set(kNow);
    EXPECT_GE(waits_.FindCulprit(kNow, 3 * kSecond).rank, 1) << "nobody computes";
  }
}

TEST_F(WaitsTest, ASlowRankIsToldOfOnce) {
  Watchdog watchdog(waits_, board_, kSecond);
  int64_t step = 0;
  const auto after_step = [&](int64_t busy_of_3) {
    ++step;
    for (int64_t r = 0; r < 4; ++r) {
      rank(r).steps.set(step);
      rank(r).busy_ns.set(r == 3 ? busy_of_3 : kSecond / 10);
    }
    return watchdog.FindSlow();
  };
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(after_step(kSecond / 10).has_value());
  // One step may take long.
  EXPECT_FALSE(after_step(kSecond).has_value());
  EXPECT_FALSE(watchdog.FindSlow().has_value()) << "the same step";
  EXPECT_FALSE(after_step(kSecond / 10).has_value());
  EXPECT_FALSE(after_step(kSecond).has_value());
  const auto slow = after_step(kSecond);
  ASSERT_TRUE(slow.has_value());
  EXPECT_EQ(*slow,
            "rank 3 (pid 71, host) is slow: it computed for 1.0 s in its last step, "
            "usually 0.1 s");
  EXPECT_FALSE(after_step(kSecond).has_value());
}

// The machine has other things to do.
TEST_F(WaitsTest, RanksThatAreAllSlowAreNotToldOf) {
  Watchdog watchdog(waits_, board_, kSecond);
  for (int64_t step = 1; step < 9; ++step) {
    for (int64_t r = 0; r < 4; ++r) {
      rank(r).steps.set(step);
      rank(r).busy_ns.set(step < 4 ? kSecond / 10 : kSecond + r * kSecond / 10);
    }
    EXPECT_FALSE(watchdog.FindSlow().has_value());
  }
}

TEST_F(WaitsTest, TheFirstReasonCounts) {
  EXPECT_FALSE(board_.end().has_value());
  EXPECT_TRUE(board_.End(1, absl::UnavailableError("first"), 4));
  EXPECT_FALSE(board_.End(0, absl::UnavailableError("second"), 1));
  EXPECT_EQ(board_.end()->process, 1);
  EXPECT_EQ(board_.end()->status.message(), "first");
  EXPECT_EQ(board_.end()->exit_code, 4);
}

// Writes numbers to all fields of a rank that any file may have there.
void Damage(int32_t a, int32_t b, RankProgress* rank) {
  rank->activity.set(static_cast<RankActivity>(b & 7));
  rank->steps.set(1);
  rank->eval.set((a & 1) != 0);
  rank->inside.set((b & 2) == 0);
  rank->at_end.set((a & 4) != 0);
  rank->in_flight.set((b & 4) != 0);
  for (auto* field : {&rank->action, &rank->item_call, &rank->plan}) field->set(a);
  for (auto* field : {&rank->call, &rank->instr, &rank->item_action, &rank->exchange}) {
    field->set(b);
  }
  rank->transfer.set((a & 8) != 0 ? a : -1);
  const int64_t time = int64_t{a} * (int64_t{1} << 32);
  for (auto* field : {&rank->since_ns, &rank->item_since_ns, &rank->moved_ns, &rank->usual_ns}) {
    field->set(time);
  }
}

constexpr int32_t kWild[] = {-1, 0, 1, 2, 4, 7, 8, 15, 1 << 20, INT32_MAX, INT32_MIN};

// A board may be a file of anything: places that no plan has are said to be such.
TEST_F(WaitsTest, ReadsAnyPlaces) {
  for (int32_t a : kWild) {
    for (int32_t b : kWild) {
      for (int64_t r = 0; r < 4; ++r) Damage(r < 2 ? a : b, r < 2 ? b : a, &rank(r));
      EXPECT_FALSE(waits_.Table(kNow).empty());
      waits_.FindCulprit(kNow, kSecond);
    }
  }
}

// Where steps are those of several plans, places are those of the one whose step it is.
TEST_F(WaitsTest, ReadsThePlanThatTheStepIsOf) {
  ChainOptions longer = Options();
  longer.micro_batches = Options().micro_batches + 3;
  const Plan other = ChainPlan(longer);
  const Waits of_both(plan_, board_, {&other});
  Computes(0, kSecond);
  // The forward of its last micro-batch, which the first plan lacks.
  const std::vector<Action>& compute = other.classes[0].train.compute;
  int32_t last = -1;
  for (size_t a = 0; a < compute.size(); ++a) {
    const ActionRef& ref = compute[a].ref;
    const bool is_it =
        ref.kind == ActionKind::kForward && ref.micro_batch == longer.micro_batches - 1;
    if (is_it) last = static_cast<int32_t>(a);
  }
  ASSERT_GE(last, 0);
  rank(0).action.set(last);
  rank(0).micro_batches.set(longer.micro_batches);
  rank(0).plan.set(1);
  const std::string place = absl::StrCat("computing 0F", longer.micro_batches - 1, " ");
  EXPECT_TRUE(absl::StrContains(of_both.StateOf(0, kNow), place)) << of_both.StateOf(0, kNow);
  EXPECT_FALSE(absl::StrContains(waits_.StateOf(0, kNow), place)) << waits_.StateOf(0, kNow);
  rank(0).plan.set(7);
  EXPECT_EQ(of_both.StateOf(0, kNow), waits_.StateOf(0, kNow)) << "no plan has that number";
}

// A queue that has ended stands at no item, whatever its places say.
TEST_F(WaitsTest, ReadsNoItemBehindTheEnd) {
  rank(0).activity.set(RankActivity::kWaiting);
  rank(0).since_ns.set(kNow - kSecond);
  rank(0).item_since_ns.set(kNow - kSecond);
  rank(0).at_end.set(true);
  rank(0).transfer.set(1 << 20);
  EXPECT_EQ(waits_.StateOf(0, kNow), "has ended its step");
}

// What is checked is what is used, though another process writes in between.
TEST_F(WaitsTest, ReadsABoardThatChanges) {
  std::atomic<bool> ended{false};
  std::thread writer([&] {
    for (size_t turn = 0; !ended; ++turn) {
      const int32_t a = kWild[turn % std::size(kWild)];
      const int32_t b = kWild[turn / 3 % std::size(kWild)];
      for (int64_t r = 0; r < 4; ++r) {
        Damage(a, b, &rank(r));
        r < 2 ? Computes(r, kSecond) : WaitsForInput(r, 9 * kSecond);
      }
    }
  });
  for (int look = 0; look < 3000; ++look) {
    EXPECT_FALSE(waits_.Table(kNow).empty());
    waits_.FindCulprit(kNow, kSecond);
  }
  ended = true;
  writer.join();
}

// Everybody waits for the next one, up to one that is not waiting and does nothing.
TEST(Waits, FollowsALongChain) {
  constexpr int kRanks = 64;
  ChainOptions options;
  options.pp = kRanks;
  const Plan plan = ChainPlan(options);
  const ProcessMap map = *ProcessMap::Create(kRanks, kRanks);
  BoardMemory memory(Board::Bytes(kRanks, kRanks));
  const Board board(memory.data(), map);
  for (int p = 0; p < kRanks; ++p) {
    EXPECT_EQ(board.ProcessOf(p), p);
    board.Enter(p, 70 + p, "host", kNow);
    board.SetStage(p, ProcessStage::kRunning, kNow);
    RankProgress& rank = board.ranks()[static_cast<size_t>(p)];
    rank.activity.set(p == 0 ? RankActivity::kReady : RankActivity::kWaiting);
    rank.since_ns.set(kNow - 9 * kSecond);
    rank.steps.set(p == 0 ? 0 : 1);
    rank.transfer.set(0);
    rank.in_flight.set(p > 0);
  }
  const Waits waits(plan, board);
  const Culprit culprit = waits.FindCulprit(kNow, kSecond);
  EXPECT_EQ(culprit.rank, 0);
  EXPECT_EQ(culprit.waits.size(), kRanks - 1U);
}

// All but one of a group stand at its sum.
TEST(Waits, NamesTheOneThatAGroupLacks) {
  constexpr int kRanks = 8;
  ChainOptions options;
  options.tp = kRanks;
  const Plan plan = ChainPlan(options);
  const ProcessMap map = *ProcessMap::Create(kRanks, 3);
  BoardMemory memory(Board::Bytes(kRanks, 3));
  const Board board(memory.data(), map);
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(board.ProcessOf(r), map.ProcessOf(r));
  for (int lacking = 0; lacking < kRanks; ++lacking) {
    for (int r = 0; r < kRanks; ++r) {
      RankProgress& rank = board.ranks()[static_cast<size_t>(r)];
      rank.activity.set(r == lacking ? RankActivity::kReady : RankActivity::kWaiting);
      rank.since_ns.set(kNow - 9 * kSecond);
      rank.steps.set(r == lacking ? 1 : 2);
      rank.transfer.set(-1);
      rank.item_call.set(1);
    }
    const Waits waits(plan, board);
    EXPECT_EQ(waits.FindCulprit(kNow, kSecond).rank, lacking);
    EXPECT_EQ(waits.FindCulprit(kNow, kSecond).waits.size(), kRanks - 1U);
  }
}

TEST_F(WaitsTest, RefusesWhatIsNoBoard) {
  EXPECT_TRUE(Board::Read(memory_.data(), static_cast<int64_t>(memory_.size())).ok());
  EXPECT_FALSE(Board::Read(memory_.data(), static_cast<int64_t>(memory_.size()) - 1).ok());
  BoardMemory zeros(Board::Bytes(4, 2));
  EXPECT_FALSE(Board::Read(zeros.data(), static_cast<int64_t>(zeros.size())).ok());
  std::vector<char> small(8);
  EXPECT_FALSE(Board::Read(small.data(), 8).ok());
  // First ranks of processes stand behind their entries; another one's, or none.
  const auto begins = [this] {
    return reinterpret_cast<int64_t*>(reinterpret_cast<char*>(&rank(0)) - 64);
  };
  ASSERT_EQ(begins()[1], 2);
  for (int at : {0, 1, 2}) {
    for (int64_t wild : {int64_t{-1}, int64_t{5}, INT64_MAX, INT64_MIN}) {
      const int64_t was = begins()[at];
      begins()[at] = wild;
      EXPECT_FALSE(Board::Read(memory_.data(), static_cast<int64_t>(memory_.size())).ok());
      // Nor does who has read it before leave the board.
      EXPECT_FALSE(waits_.Table(kNow).empty());
      begins()[at] = was;
    }
  }
}

}  // namespace
}  // namespace mgc
