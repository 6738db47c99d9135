#include "runtime/data/batch_reader.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr int64_t kSeqLength = 5;
constexpr int64_t kBatch = 4;

TokenDataset Text(int64_t samples, const char* name) {
  std::string bytes;
  for (int64_t i = 0; i <= samples * kSeqLength; ++i) bytes += static_cast<char>(i % 251);
  return *TokenDataset::FromBytes(bytes, kSeqLength, name);
}

StepData StepAt(const TokenDataset& text, int64_t first,
                int64_t end = std::numeric_limits<int64_t>::max()) {
  StepData step;
  step.data = &text;
  step.first_sample = first;
  step.end_sample = end;
  return step;
}

// That `batch` has what the text itself gives for `rows` of the step, and nothing of other rows.
void ExpectHolds(const TokenBatch* batch, const StepData& step, const std::vector<int64_t>& rows) {
  ASSERT_NE(batch, nullptr);
  std::vector<bool> expected(kBatch, false);
  for (int64_t row : rows) expected[static_cast<size_t>(row)] = true;
  for (int64_t row = 0; row < kBatch; ++row) {
    if (!expected[static_cast<size_t>(row)]) {
      EXPECT_THAT(batch->Row(row), IsEmpty()) << "row " << row;
      continue;
    }
    std::vector<int32_t> tokens(kSeqLength + 1);
    const int64_t sample = SampleOf(step, step.first_sample + row);
    ASSERT_TRUE(step.data->ReadSample(sample, 0, 0, absl::MakeSpan(tokens)).ok());
    EXPECT_THAT(batch->Row(row), ElementsAreArray(tokens)) << "row " << row;
  }
  EXPECT_THAT(batch->Row(kBatch), IsEmpty());
  EXPECT_THAT(batch->Row(-1), IsEmpty());
}

// Announced in time, late, or not at all; in order, again, and elsewhere, as after a resume.
TEST(BatchReaderTest, WhatIsTakenIsTheStepsText) {
  const TokenDataset train = Text(37, "train");
  const TokenDataset eval = Text(6, "eval");
  const std::vector<int64_t> rows = {0, 2, 3};
  BatchReader reader(rows, kBatch, kSeqLength);
  const auto take = [&](const StepData& step) { ExpectHolds(reader.Take(step), step, rows); };
  for (int64_t step = 0; step < 300; ++step) {
    const int64_t first = step * kBatch;
    take(StepAt(train, first));
    if (step % 3 != 0) reader.Announce(StepAt(train, first + kBatch));
    reader.Announce(StepAt(eval, 0, 6));
    if (step % 50 == 0) take(StepAt(train, first));
    if (step % 70 == 0) take(StepAt(train, first + 1));
    if (step % 4 != 0) continue;
    take(StepAt(eval, 0, 6));
    reader.Announce(StepAt(eval, kBatch, 6));
    take(StepAt(eval, kBatch, 6));
  }
}

// More announcements than are kept, each of them taken later.
TEST(BatchReaderTest, AnnouncementsReplaceEarlierOnes) {
  const TokenDataset text = Text(100, "text");
  BatchReader reader({0, 1, 2, 3}, kBatch, kSeqLength);
  for (int64_t round = 0; round < 50; ++round) {
    for (int64_t step = 0; step < 9; ++step) reader.Announce(StepAt(text, step * kBatch));
    for (int64_t step = 8; step >= 0; --step) {
      ExpectHolds(reader.Take(StepAt(text, step * kBatch)), StepAt(text, step * kBatch),
                  {0, 1, 2, 3});
    }
  }
}

TEST(BatchReaderTest, EndsWithoutWhatWasAnnounced) {
  const TokenDataset text = Text(1000, "text");
  for (int64_t round = 0; round < 100; ++round) {
    BatchReader reader({0, 1, 2, 3}, kBatch, kSeqLength);
    const bool takes = round % 2 == 0;
    EXPECT_EQ(takes, takes && reader.Take(StepAt(text, round)) != nullptr);
    for (int64_t step = 0; step < round % 5; ++step) reader.Announce(StepAt(text, step));
  }
}

TEST(BatchReaderTest, ReadsNothingWithoutRowsOrText) {
  const TokenDataset text = Text(5, "text");
  BatchReader none({}, kBatch, kSeqLength);
  none.Announce(StepAt(text, 0));
  EXPECT_EQ(none.Take(StepAt(text, 0)), nullptr);
  BatchReader reader({0}, kBatch, kSeqLength);
  StepData tensors;
  reader.Announce(tensors);
  EXPECT_EQ(reader.Take(tensors), nullptr);
}

}  // namespace
}  // namespace mgc
