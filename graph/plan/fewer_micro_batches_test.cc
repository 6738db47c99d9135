#include "graph/plan/fewer_micro_batches.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::ElementsAre;

Action ActionOf(ActionKind kind, int64_t micro_batch) {
  Action action;
  action.ref = {kind, 0, micro_batch};
  return action;
}

TransferRef SendOf(int64_t micro_batch) { return {TransferKind::kSendForward, 0, micro_batch}; }

Transfer TransferOf(int64_t micro_batch, const ActionRef& anchor) {
  Transfer transfer;
  transfer.ref = SendOf(micro_batch);
  transfer.anchor = anchor;
  transfer.issued = 2;
  return transfer;
}

std::vector<std::string> Words(const Program& program) {
  std::vector<std::string> words;
  for (const Action& action : program.compute) {
    words.push_back(absl::StrCat(LetterOf(action.ref.kind), action.ref.micro_batch));
  }
  return words;
}

// Six forwards that send; two outboxes in turn: forward m waits for the send of m - 2.
Program SixForwards() {
  Program program;
  for (int64_t m = 0; m < 6; ++m) {
    program.compute.push_back(ActionOf(ActionKind::kForward, m));
    program.compute.back().output = m % 2;
    if (m >= 2) program.compute.back().waits = {SendOf(m - 2)};
    program.transfers.push_back(TransferOf(m, {ActionKind::kForward, 0, m}));
  }
  program.compute.push_back(ActionOf(ActionKind::kUpdate, 0));
  return program;
}

TEST(FewerMicroBatchesTest, NumbersTheRestAnewAndKeepsAddresses) {
  const Program projected = ProjectMicroBatches(SixForwards(), {0, 1, 5});
  EXPECT_THAT(Words(projected), ElementsAre("F0", "F1", "F2", "U0"));
  EXPECT_EQ(projected.compute[2].output, 1);
  ASSERT_EQ(projected.transfers.size(), 3u);
  EXPECT_EQ(projected.transfers[2].ref.micro_batch, 2);
  EXPECT_EQ(projected.transfers[2].anchor.micro_batch, 2);
  EXPECT_EQ(projected.transfers[2].issued, 2);
}

// Forward 5 waits for the send of 3, which followed forward 3, which waited for the send of 1: both
// use the second outbox.
TEST(FewerMicroBatchesTest, WaitsPassThroughWhatIsLeftOut) {
  const Program projected = ProjectMicroBatches(SixForwards(), {0, 1, 5});
  std::vector<int64_t> waits;
  for (const TransferRef& ref : projected.compute[2].waits) waits.push_back(ref.micro_batch);
  EXPECT_THAT(waits, testing::UnorderedElementsAre(0, 1));
}

TEST(FewerMicroBatchesTest, AnAnchorThatIsLeftOutMovesToTheNextAction) {
  Program program = SixForwards();
  program.transfers[1].anchor = {ActionKind::kForward, 0, 3};
  const Program projected = ProjectMicroBatches(program, {0, 1, 5});
  EXPECT_EQ(projected.transfers[1].anchor.micro_batch, 2);
  EXPECT_EQ(projected.transfers[1].issued, 0);
}

// The send of 1 is listed behind one that is left out and anchored later: it stays behind it.
TEST(FewerMicroBatchesTest, ATransferStaysBehindTheAnchorsOfAllBeforeIt) {
  Program program = SixForwards();
  std::swap(program.transfers[1], program.transfers[3]);
  program.transfers[1].anchor = {ActionKind::kForward, 0, 4};
  program.transfers[3].anchor = {ActionKind::kForward, 0, 1};
  const Program projected = ProjectMicroBatches(program, {0, 1, 5});
  ASSERT_EQ(projected.transfers.size(), 3u);
  EXPECT_EQ(projected.transfers[0].anchor.micro_batch, 0);
  EXPECT_EQ(projected.transfers[1].ref.micro_batch, 1);
  EXPECT_EQ(projected.transfers[1].anchor.micro_batch, 2);
  EXPECT_EQ(projected.transfers[1].issued, 0);
}

TEST(FewerMicroBatchesTest, CreditsOfActionsThatAreLeftOutComeFromTheKeptOneBefore) {
  Program program = SixForwards();
  program.transfers[5].after = {{ActionKind::kForward, 0, 3}};
  const Program projected = ProjectMicroBatches(program, {0, 1, 5});
  ASSERT_FALSE(projected.transfers[2].after.empty());
  for (const ActionRef& ref : projected.transfers[2].after) EXPECT_LE(ref.micro_batch, 2);
}

TEST(FewerMicroBatchesTest, LongChainsOfTransfers) {
  constexpr int64_t kMicroBatches = 300000;
  Program program;
  for (int64_t m = 0; m < kMicroBatches; ++m) {
    program.compute.push_back(ActionOf(ActionKind::kForward, m));
    program.transfers.push_back(TransferOf(m, {ActionKind::kForward, 0, m}));
    if (m > 0) program.transfers.back().after_transfers = {SendOf(m - 1)};
  }
  const Program projected = ProjectMicroBatches(program, {0, 1, kMicroBatches - 1});
  ASSERT_EQ(projected.transfers.size(), 3u);
  ASSERT_EQ(projected.transfers[2].after_transfers.size(), 1u);
  EXPECT_EQ(projected.transfers[2].after_transfers[0].micro_batch, 1);
}

}  // namespace
}  // namespace mgc
