#include "runtime/data/feed.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/data/token_batch.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kImages{DType::kF32, {{2, "batch", 1}, {2, "", 1}, {4, "wide", 1}}};

SampleTensor Images(int64_t samples) {
  std::vector<float> values;
  for (int64_t i = 0; i < samples * 8; ++i) values.push_back(static_cast<float>(i));
  return {{samples, 2, 4}, std::move(values)};
}

TEST(FeedTest, ARankTakesItsTileOfEverySample) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 2}});
  Slot slot;
  slot.type = kImages;
  slot.sharding = *ParseSharding("dp,-,tp", mesh);
  const SampleTensor images = Images(3);
  const SampleTensor* tensors[] = {&images};
  StepData step;
  step.end_sample = 100;
  step.tensors = tensors;
  const DataInput inputs[] = {{"images", kImages}};
  const auto tile = [&](int64_t rank, int64_t first) {
    std::vector<float> out(4, -1);
    std::vector<int32_t> scratch(2);
    EXPECT_TRUE(FillData(inputs, 0, slot, mesh, rank, step, first, absl::MakeSpan(scratch),
                         reinterpret_cast<char*>(out.data()))
                    .ok());
    return out;
  };
  EXPECT_THAT(tile(0, 0), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(tile(1, 0), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(tile(2, 0), ElementsAre(8, 9, 12, 13));
  EXPECT_THAT(tile(3, 1), ElementsAre(18, 19, 22, 23));
  EXPECT_THAT(tile(3, 2), ElementsAre(2, 3, 6, 7)) << "sample 3 of 3 is the first again";
}

TEST(FeedTest, WeightsOfAnyShapeAreOnesForSamplesThatCount) {
  const Mesh mesh = *Mesh::Create({});
  const TensorType type{DType::kF32, {{3, "batch", 1}, {2, "", 1}}};
  Slot slot;
  slot.type = type;
  slot.sharding = *ParseSharding("-,-", mesh);
  const DataInput inputs[] = {{"weights", type}};
  StepData step;
  step.end_sample = 2;
  std::vector<float> out(6, -1);
  std::vector<int32_t> scratch(2);
  ASSERT_TRUE(FillData(inputs, 0, slot, mesh, 0, step, 0, absl::MakeSpan(scratch),
                       reinterpret_cast<char*>(out.data()))
                  .ok());
  EXPECT_THAT(out, ElementsAre(1, 1, 1, 1, 0, 0));
}

// Each input by its own table: a target is the token behind.
TEST(FeedTest, TokensMustBeInTheTableThatTheyAreLookedUpIn) {
  const Mesh mesh = *Mesh::Create({});
  Slot slot;
  slot.type = {DType::kI64, {{1, "batch", 1}, {3, "seq", 1}}};
  slot.sharding = *ParseSharding("-,-", mesh);
  const TokenDataset data = *TokenDataset::FromBytes("abcz", 3, "text");
  StepData step;
  step.data = &data;
  step.end_sample = 1;
  const DataInput inputs[] = {{"targets", slot.type, 'd'}, {"tokens", slot.type, 'd'}};
  std::vector<int64_t> out(3);
  std::vector<int32_t> scratch(4);
  const auto fill = [&](int input) {
    return FillData(inputs, input, slot, mesh, 0, step, 0, absl::MakeSpan(scratch),
                    reinterpret_cast<char*>(out.data()));
  };
  EXPECT_TRUE(fill(1).ok());
  EXPECT_THAT(out, ElementsAre('a', 'b', 'c'));
  EXPECT_EQ(fill(0).message(),
            "text: token 3 is 122, outside the vocabulary of 100 (legal: 0 to 99)");
}

// Documents `ab.`, `c.`, `defg`, across two tiles of three.
TEST(FeedTest, DocumentsOfASample) {
  const Mesh mesh = *Mesh::Create({{"cp", 2}});
  const TensorType indices{DType::kI64, {{1, "batch", 1}, {6, "seq", 1}}};
  const TensorType reals{DType::kF32, indices.dims};
  TokenDataset data = *TokenDataset::FromBytes("ab.c.defg", 6, "text");
  data.EndDocumentsWith({'.', true});
  const DataInput inputs[] = {
      {"documents", indices}, {"positions", indices, 3}, {"tokens", indices}, {"weights", reals}};
  TokenBatch batch({0}, 1, 6);
  batch.Read(data, 0, 0);
  StepData step;
  step.data = &data;
  step.end_sample = 1;
  std::vector<int32_t> scratch(7);
  const auto fill = [&](int input, auto zero) {
    std::vector<decltype(zero)> all;
    for (int64_t rank = 0; rank < 2; ++rank) {
      std::vector<decltype(zero)> out(3);
      Slot slot;
      slot.type = inputs[input].type;
      slot.sharding = *ParseSharding("-,cp", mesh);
      EXPECT_TRUE(FillData(inputs, input, slot, mesh, rank, step, 0, absl::MakeSpan(scratch),
                           reinterpret_cast<char*>(out.data()))
                      .ok());
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  };
  for (const TokenBatch* ahead : {static_cast<const TokenBatch*>(nullptr), &std::as_const(batch)}) {
    step.batch = ahead;
    EXPECT_THAT(fill(0, int64_t{}), ElementsAre(0, 0, 0, 1, 1, 2));
    EXPECT_THAT(fill(1, int64_t{}), ElementsAre(0, 1, 2, 0, 1, 0));
    EXPECT_THAT(fill(2, int64_t{}), ElementsAre('a', 'b', '.', 'c', '.', 'd'));
    EXPECT_THAT(fill(3, float{}), ElementsAre(1, 1, 0, 1, 0, 1));
  }
  data.EndDocumentsWith({'.', false});
  EXPECT_THAT(fill(3, float{}), ElementsAre(1, 1, 1, 1, 1, 1));
  Plan plan;
  plan.seq_length = 6;
  EXPECT_TRUE(CheckFed(plan, inputs, step).ok());
  const TokenDataset plain = *TokenDataset::FromBytes("ab.c.defg", 6, "text");
  step.data = &plain;
  EXPECT_THAT(std::string(CheckFed(plan, inputs, step).message()),
              testing::AllOf(HasSubstr("`documents` i64[batch=1,seq=6] is given a text of which"),
                             HasSubstr("`positions` i64[batch=1,seq=6] is given a text of which")));
}

// Of three rows one has been read; one could not be, and is read now; of one there was no room.
TEST(FeedTest, ABatchThatWasReadAheadChangesNothing) {
  const Mesh mesh = *Mesh::Create({});
  Slot slot;
  slot.type = {DType::kI64, {{3, "batch", 1}, {3, "seq", 1}}};
  slot.sharding = *ParseSharding("-,-", mesh);
  const TokenDataset data = *TokenDataset::FromBytes("abcdefghijkl{n", 3, "text");
  TokenBatch batch({0, 1}, 3, 3);
  batch.Read(data, 0, 1);
  StepData step;
  step.data = &data;
  step.first_sample = 1;
  step.end_sample = 100;
  const DataInput inputs[] = {{"targets", slot.type, 'z'}, {"tokens", slot.type, 'z'}};
  std::vector<int64_t> out(9);
  std::vector<int32_t> scratch(4);
  const auto fill = [&](int input) {
    return FillData(inputs, input, slot, mesh, 0, step, 1, absl::MakeSpan(scratch),
                    reinterpret_cast<char*>(out.data()));
  };
  ASSERT_TRUE(fill(1).ok());
  const std::vector<int64_t> alone = out;
  const absl::Status wrong = fill(0);
  EXPECT_EQ(wrong.message(),
            "text: token 12 is 123, outside the vocabulary of 122 (legal: 0 to 121)");
  step.batch = &batch;
  for (const int64_t room : {0, 1}) {
    if (room == 1) batch.Read(data, 1, 2);
    out.assign(9, -1);
    EXPECT_TRUE(fill(1).ok());
    EXPECT_EQ(out, alone);
    EXPECT_EQ(fill(0), wrong);
  }
  TokenBatch last({2}, 3, 3);  // the row with the token that is wrong as a target
  last.Read(data, 2, 3);
  step.batch = &last;
  EXPECT_TRUE(fill(1).ok());
  EXPECT_EQ(out, alone);
  EXPECT_EQ(fill(0), wrong);
}

TEST(FeedTest, EveryInputMustBeFed) {
  Plan plan;
  plan.seq_length = 4;
  const TensorType text{DType::kI64, {{2, "batch", 1}, {4, "seq", 1}}};
  const std::vector<DataInput> inputs = {{"images", kImages}, {"tokens", text}};
  StepData step;
  EXPECT_THAT(std::string(CheckFed(plan, inputs, step).message()),
              testing::AllOf(HasSubstr("`images` f32[batch=2,2,wide=4] is given no tensor"),
                             HasSubstr("`tokens` i64[batch=2,seq=4] is given neither")));
  const TokenDataset data = *TokenDataset::FromBytes(std::string(21, 'x'), 4, "data");
  const SampleTensor few = Images(4);
  const SampleTensor enough = Images(5);
  const SampleTensor* tensors[] = {&few, nullptr};
  step.data = &data;
  step.tensors = tensors;
  EXPECT_THAT(std::string(CheckFed(plan, inputs, step).message()),
              HasSubstr("is given f32[samples=4,2,4] for the 5 samples of an epoch"));
  tensors[0] = &enough;
  EXPECT_TRUE(CheckFed(plan, inputs, step).ok());
  EXPECT_EQ(SamplesPerEpoch(step), 5);
  plan.seq_length = 3;
  EXPECT_THAT(std::string(CheckFed(plan, inputs, step).message()), HasSubstr("no tensor"));
}

}  // namespace
}  // namespace mgc
