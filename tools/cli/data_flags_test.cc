#include "tools/cli/data_flags.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
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
  const auto data = OpenData(flags, 5, 1);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train->tokens(), 60);
  EXPECT_EQ(data->eval->tokens(), 30);
  std::vector<int32_t> tokens(6);
  ASSERT_TRUE(data->eval->ReadSample(0, 0, 0, absl::MakeSpan(tokens)).ok());
  EXPECT_EQ(tokens, std::vector<int32_t>(6, 6));
  EXPECT_THAT(TrainFilesOf(flags),
              testing::ElementsAre(Path("split") + ".bin", Path("split") + ".idx"));
  flags.split = "99,1";
  EXPECT_THAT(std::string(OpenData(flags, 5, 1).status().message()),
              HasSubstr("has 10 documents, of which --split 99,1 gives none to evaluation"));
}

TEST(DataFlagsTest, FilesWithoutWeightsAreOneSource) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "aaa").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("b"), "bbb").ok());
  DataFlags flags;
  flags.train = {Path("a"), Path("b")};
  std::string order;
  for (const bool weighted : {false, true}) {
    if (weighted) flags.train = {"1", Path("a"), "1", Path("b")};
    const auto data = OpenData(flags, 1, 1);
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
