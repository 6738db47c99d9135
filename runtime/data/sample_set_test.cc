#include "runtime/data/sample_set.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using testing::HasSubstr;

// Samples of two values: 0 1, 2 3, ...
InputTensors Counting(int64_t samples) {
  SampleTensor tensor;
  tensor.shape = {samples, 2};
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 2 * samples; ++i) values.push_back(i);
  tensor.values = std::move(values);
  return {absl::nullopt, std::move(tensor)};
}

int64_t FirstValue(const StepData& step, int64_t sample) {
  int64_t value = -1;
  step.tensors[1]->Sample(sample).copy(reinterpret_cast<char*>(&value), sizeof(value));
  return value;
}

TEST(SampleSetTest, HoldsBackTheLastSamples) {
  const SampleSet all(absl::nullopt, Counting(10));
  EXPECT_EQ(all.samples(), 10);
  auto parts = all.HoldBackTail(3);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const SampleSet rest = std::move(parts->first);
  const SampleSet tail = std::move(parts->second);
  EXPECT_EQ(rest.samples(), 7);
  EXPECT_EQ(tail.samples(), 3);
  EXPECT_EQ(rest.At(0, 7).tensors[0], nullptr);
  EXPECT_EQ(FirstValue(rest.At(0, 7), 6), 12);
  EXPECT_EQ(FirstValue(tail.At(0, 3), 0), 14);
  EXPECT_EQ(FirstValue(tail.At(0, 3), 2), 18);
}

// The text and the tensors are cut at the same sample.
TEST(SampleSetTest, HoldsBackTextAndTensorsTogether) {
  const std::string bytes = "abcdefghijklmnopqrstu";  // 5 samples of 4 tokens
  const SampleSet all(*TokenDataset::FromBytes(bytes, 4, "text"), Counting(6));
  EXPECT_EQ(all.samples(), 5);
  auto parts = all.HoldBackTail(2);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const StepData tail = parts->second.At(0, 2);
  std::vector<int32_t> tokens(5);
  ASSERT_TRUE(tail.data->ReadSample(0, 0, 0, absl::MakeSpan(tokens)).ok());
  EXPECT_EQ(tokens[0], 'm');
  EXPECT_EQ(FirstValue(tail, 0), 6);
  EXPECT_EQ(parts->first.samples(), 3 - 1);  // the byte between both parts is in neither
  const SampleSet longer(*TokenDataset::FromBytes(bytes + "vw", 4, "text"), Counting(6));
  EXPECT_THAT(std::string(longer.HoldBackTail(2).status().message()),
              HasSubstr("some of the text's tokens lie behind its last sample"));
}

TEST(SampleSetTest, LeavesAtLeastOneSample) {
  const SampleSet all(absl::nullopt, Counting(4));
  EXPECT_TRUE(all.HoldBackTail(3).ok());
  for (int64_t tail : {int64_t{0}, int64_t{-1}, int64_t{4}, INT64_MAX}) {
    EXPECT_THAT(std::string(all.HoldBackTail(tail).status().message()),
                HasSubstr("of 4 samples: from 1 to 3 are possible"));
  }
  EXPECT_THAT(std::string(SampleSet(absl::nullopt, Counting(1)).HoldBackTail(1).status().message()),
              HasSubstr("there is only one"));
}

}  // namespace
}  // namespace mgc
