#include "tools/tokens/tokenize_files.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Path(absl::string_view name) {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return absl::StrCat(::testing::TempDir(), "/", test, "-", name);
}

std::vector<std::string> Documents(absl::string_view text, const DocumentRule& rule) {
  EXPECT_TRUE(WriteFileAtomically(Path("text"), text).ok());
  std::vector<std::string> documents;
  const auto take = [&documents](std::string document) {
    documents.push_back(std::move(document));
    return absl::OkStatus();
  };
  const absl::Status status = ForEachDocument(Path("text"), rule, take);
  if (!status.ok()) documents.emplace_back(status.message());
  return documents;
}

TEST(DocumentsTest, WhatOneIs) {
  using Kind = DocumentRule::Kind;
  EXPECT_THAT(Documents("a\nb\n", {Kind::kFile}), ElementsAre("a\nb\n"));
  EXPECT_THAT(Documents("", {Kind::kFile}), ElementsAre());
  EXPECT_THAT(Documents("a\r\n\nb", {Kind::kLine}), ElementsAre("a", "b"));
  EXPECT_THAT(Documents("a--b---c--", {Kind::kSeparator, "", "--"}), ElementsAre("a", "b", "-c"));
  EXPECT_THAT(Documents("{\"text\": \"a\\nb\", \"n\": 1}\n\n{\"text\": \"\"}\n{\"text\": \"c\"}",
                        {Kind::kJsonLine, "text"}),
              ElementsAre("a\nb", "c"));
}

TEST(DocumentsTest, LinesOfJsonThatAreNone) {
  const DocumentRule rule = {DocumentRule::Kind::kJsonLine, "text"};
  EXPECT_THAT(Documents("{\"text\": \"a\"}\n{\"t\": 1}\n", rule),
              ElementsAre("a", HasSubstr(", line 2: has no `text`")));
  EXPECT_THAT(Documents("{\"text\": 1}\n", rule), ElementsAre(HasSubstr("`text` is an integer")));
  EXPECT_THAT(Documents("[]\n", rule), ElementsAre(HasSubstr("line 1: is an array")));
  EXPECT_THAT(Documents("\n{\n", rule), ElementsAre(HasSubstr("line 2:1:")));
}

// A separator that lies across two of the pieces that a file is read in.
TEST(DocumentsTest, SeparatorsAcrossPieces) {
  constexpr size_t kPiece = size_t{1} << 20;
  for (const size_t before : {kPiece - 2, kPiece - 1, kPiece}) {
    const std::string first(before, 'x');
    EXPECT_THAT(Documents(first + "<|>" + "y", {DocumentRule::Kind::kSeparator, "", "<|>"}),
                ElementsAre(first, "y"));
  }
}

TEST(TokenizeFilesTest, TheSameFileWhateverTheWorkers) {
  std::string text;
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&text, "line ", i * 7919 % 1000, " of all\n");
  ASSERT_TRUE(WriteFileAtomically(Path("text"), text).ok());
  WordCounts counts(SplitPattern::kGpt2);
  counts.Add(text.substr(0, 1000));
  const Tokenizer tokenizer = TrainBpe(counts, 300);
  std::vector<std::string> contents;
  for (const int workers : {1, 2, 5}) {
    TokenizeOptions options;
    options.rule.kind = DocumentRule::Kind::kLine;
    options.workers = workers;
    options.end_with = tokenizer.end_of_document();
    int64_t shown = 0;
    options.on_progress = [&shown](const TokenizeProgress& progress) {
      shown = progress.documents;
    };
    auto writer =
        TokenFileWriter::Create(Path("out"), TokenFormat::kMegatron, tokenizer.vocabulary_size());
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(TokenizeFiles({Path("text")}, tokenizer, options, writer->get()).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_EQ(shown, 100000);
    contents.push_back(*ReadFile(Path("out.bin")) + *ReadFile(Path("out.idx")));
  }
  EXPECT_EQ(contents[0], contents[1]);
  EXPECT_EQ(contents[0], contents[2]);
  std::string decoded;
  const auto append = [&decoded](absl::string_view piece) {
    decoded.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  ASSERT_TRUE(DecodeFile(**TokenFile::Open(Path("out")), tokenizer, append).ok());
  EXPECT_THAT(decoded, testing::StartsWith("line 0 of all<|endoftext|>line 919 of all<|endo"));
}

}  // namespace
}  // namespace mgc
