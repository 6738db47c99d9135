#include "tools/cli/data_flags.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/testing/npy_text.h"
#include "runtime/data/tokens/token_file_writer.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;

std::string Path(absl::string_view name) { return absl::StrCat(::testing::TempDir(), "/", name); }

std::string Errors(const DataFlags& flags, bool has_tensors = false) {
  return CheckDataFlags(flags, has_tensors).ToString();
}

TEST(DataFlagsTest, WhatDoesNotGoTogether) {
  DataFlags flags;
  flags.train = {"0.5", "a", "0.5", "b"};
  EXPECT_EQ(Errors(flags), "");
  EXPECT_THAT(Errors(flags, true), HasSubstr("several weights of --data with --inputs"));
  flags.train = {"0.5", "a", "b"};
  EXPECT_THAT(Errors(flags), HasSubstr("1 of 2 files have a weight [F5]"));
  flags.train = {"1e308", "a", "1e308", "b"};
  EXPECT_THAT(Errors(flags), HasSubstr("not above 0 and finite [F5]"));
  flags.train = {"a"};
  for (const char* split : {"", "x", "-1,2", "0,1", "1,2,3,4", "nan,1", "1,inf", "1,,2"}) {
    flags.split = split;
    EXPECT_THAT(Errors(flags), HasSubstr("[F5]")) << split;
    EXPECT_FALSE(SplitsOffEvaluation(flags)) << split;
  }
  flags.split = "1";
  EXPECT_FALSE(SplitsOffEvaluation(flags));
  flags.split = "9,1";
  EXPECT_TRUE(SplitsOffEvaluation(flags));
  flags.eval = {"b"};
  flags.shuffle = true;
  EXPECT_THAT(Errors(flags, true), testing::AllOf(HasSubstr("--split and --eval-data both give"),
                                                  HasSubstr("--shuffle with --inputs")));
}

// Ten documents of ten tokens, each its number: shares are of documents, as Megatron-LM's.
TEST(DataFlagsTest, SplitsAreOfDocuments) {
  auto writer = TokenFileWriter::Create(Path("split"), TokenFormat::kMegatron, 100);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int32_t document = 0; document < 10; ++document) {
    ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(10, document)).ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  DataFlags flags;
  flags.train = {Path("split")};
  flags.split = "6,3,1";
  const auto data = OpenData(flags, {5, 0, 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->tokens(), 60);
  EXPECT_EQ(data->eval->tokens(), 30);
  std::vector<int32_t> tokens(6);
  ASSERT_TRUE(data->eval->ReadSample(0, 0, 0, absl::MakeSpan(tokens)).ok());
  EXPECT_EQ(tokens, std::vector<int32_t>(6, 6));
  EXPECT_THAT(TrainFilesOf(flags),
              testing::ElementsAre(Path("split") + ".bin", Path("split") + ".idx"));
  flags.split = "99,1";
  EXPECT_THAT(std::string(OpenData(flags, {5, 0, 1}).status().message()),
              HasSubstr("has 10 documents, of which --split 99,1 gives none to evaluation"));
}

TEST(DataFlagsTest, MegatronsOrderIsOfOneFile) {
  DataFlags flags;
  flags.megatron_orders = {Path("order")};
  EXPECT_THAT(Errors(flags), HasSubstr("--megatron-order is the order of one file of --data"));
  flags.train = {"a"};
  EXPECT_EQ(Errors(flags), "");
  EXPECT_THAT(Errors(flags, true), HasSubstr("--megatron-order with --inputs"));
  flags.shuffle = true;
  EXPECT_THAT(Errors(flags), HasSubstr("instead of --shuffle and --split; of 1 files"));
  flags.shuffle = false;
  flags.train = {"a", "b"};
  EXPECT_THAT(Errors(flags), testing::AllOf(HasSubstr("of 2 files there are 1 orders"),
                                            HasSubstr("neither weights nor --megatron-blend")));
  flags.megatron_orders = {"a", "b"};
  flags.megatron_blend = "c";
  EXPECT_EQ(Errors(flags), "");
  EXPECT_THAT(TrainFilesOf(flags),
              testing::IsSupersetOf({"b-shuffle_index.npy", "c-dataset_sample_index.npy"}));
  flags.megatron_blend.reset();
  flags.train = {"1", "a", "2", "b"};
  EXPECT_EQ(Errors(flags), "");
  flags.megatron_orders = {};
  flags.megatron_blend = "c";
  EXPECT_THAT(Errors(flags), HasSubstr("--megatron-blend blends what --megatron-order orders"));
}

// Two files of one sample each, with orders and without.
TEST(DataFlagsTest, MegatronsOrdersAreBlended) {
  DataFlags flags;
  for (const int32_t source : {1, 2}) {
    const std::string file = Path(absl::StrCat("ordered", source));
    auto writer = TokenFileWriter::Create(file, TokenFormat::kMegatron, 100);
    ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(3, source)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    flags.train.insert(flags.train.end(), {absl::StrCat(source), file});
    flags.megatron_orders.push_back(file);
  }
  EXPECT_THAT(std::string(OpenData(flags, {2, 0, 1}).status().message()),
              testing::AllOf(HasSubstr("ordered1-document_index.npy"),
                             HasSubstr("ordered2-document_index.npy")));
  for (const std::string& file : flags.megatron_orders) {
    const auto write = [&](absl::string_view end, const std::string& bytes) {
      ASSERT_TRUE(WriteFileAtomically(absl::StrCat(file, end), bytes).ok());
    };
    write("-document_index.npy", NpyText<int32_t>("<i4", "1,", {0}));
    write("-sample_index.npy", NpyText<int32_t>("<i4", "2, 2", {0, 0, 0, 2}));
    write("-shuffle_index.npy", NpyText<uint32_t>("<u4", "1,", {0}));
  }
  const auto sources = [&] {
    const auto data = OpenData(flags, {2, 0, 1});
    EXPECT_TRUE(data.ok()) << data.status();
    std::vector<int32_t> first(6);
    for (size_t i = 0; data.ok() && i < first.size(); ++i) {
      EXPECT_TRUE(
          data->train->ReadSample(static_cast<int64_t>(i), 0, 0, absl::MakeSpan(&first[i], 1))
              .ok());
    }
    return first;
  };
  EXPECT_THAT(sources(), testing::ElementsAre(2, 1, 2, 1, 2, 2));
  flags.megatron_blend = Path("blend");
  EXPECT_THAT(std::string(OpenData(flags, {2, 0, 1}).status().message()),
              HasSubstr("blend-dataset_index.npy"));
  ASSERT_TRUE(
      WriteFileAtomically(Path("blend-dataset_index.npy"), NpyText<int16_t>("<i2", "2,", {1, 0}))
          .ok());
  ASSERT_TRUE(WriteFileAtomically(Path("blend-dataset_sample_index.npy"),
                                  NpyText<int64_t>("<i8", "2,", {0, 0}))
                  .ok());
  EXPECT_THAT(sources(), testing::ElementsAre(2, 1, 2, 1, 2, 1));
}

TEST(DataFlagsTest, TokensThatAreMadeUp) {
  DataFlags flags;
  flags.mock = true;
  flags.split = "3,1";
  const auto data = OpenData(flags, {8, 100, 5});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->tokens(), 3 * data->eval->tokens());
  std::vector<int32_t> tokens(9);
  EXPECT_TRUE(data->eval->ReadSample(12345, 0, 100, absl::MakeSpan(tokens)).ok());
  EXPECT_THAT(std::string(OpenData(flags, {8, 0, 5}).status().message()),
              HasSubstr("the model looks none up"));
  flags.train = {"a"};
  EXPECT_THAT(Errors(flags), HasSubstr("--mock-data and --data both give tokens to train on"));
}

TEST(DataFlagsTest, DocumentsEndWithATokenOfTheVocabulary) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "aaaa").ok());
  DataFlags flags;
  flags.train = flags.eval = {Path("a")};
  flags.eod_mask_loss = true;
  EXPECT_THAT(Errors(flags), HasSubstr("--eod-mask-loss means something with --eod alone [F7]"));
  flags.eod = 97;
  EXPECT_EQ(Errors(flags), "");
  const auto data = OpenData(flags, {2, 98, 1});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->ends()->token, 97);
  EXPECT_TRUE(data->eval->ends()->mask_loss);
  flags.eod = 98;
  EXPECT_THAT(std::string(OpenData(flags, {2, 98, 1}).status().message()),
              HasSubstr("--eod 98 is outside the vocabulary of 98 (legal: 0 to 97)"));
}

TEST(DataFlagsTest, TokensOutsideOfTheVocabularyAreFoundInAllFiles) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "aaza").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("b"), "aaay").ok());
  DataFlags flags;
  flags.train = {Path("a")};
  flags.eval = {Path("b")};
  EXPECT_TRUE(OpenData(flags, {2, 123, 1}).ok());
  EXPECT_THAT(std::string(OpenData(flags, {2, 100, 1}).status().message()),
              testing::AllOf(HasSubstr("a: token 2 is 122"), HasSubstr("b: token 3 is 121")));
}

TEST(DataFlagsTest, FilesWithoutWeightsAreOneSource) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "aaa").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("b"), "bbb").ok());
  DataFlags flags;
  flags.train = {Path("a"), Path("b")};
  std::string order;
  for (const bool weighted : {false, true}) {
    if (weighted) flags.train = {"1", Path("a"), "1", Path("b")};
    const auto data = OpenData(flags, {1, 0, 1});
    ASSERT_TRUE(data.ok()) << data.status();
    for (int64_t i = 0; i < 4; ++i) {
      int32_t token = 0;
      ASSERT_TRUE(data->train->ReadSample(i, 0, 0, absl::MakeSpan(&token, 1)).ok());
      order += static_cast<char>(token);
    }
  }
  EXPECT_EQ(order, "aabbabab");
}

}  // namespace
}  // namespace mgc
