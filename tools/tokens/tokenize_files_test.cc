#include "tools/tokens/tokenize_files.h"

#include <cstdio>
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

// A run that ends in the middle, at a line that is no JSON, goes on when that line is one.
TEST(TokenizeFiles, GoesOnWhereItWasInterrupted) {
  const Tokenizer tokenizer = ByteTokenizer();
  std::string good, bad;
  for (int i = 0; i < 300; ++i) {
    const std::string line = absl::StrCat("{\"text\": \"document ", i, "\"}\n");
    good += line;
    bad += i == 250 ? "no JSON\n" : line;
  }
  for (const TokenFormat format :
       {TokenFormat::kMegatron, TokenFormat::kNanoGpt, TokenFormat::kLlmC}) {
    const auto run = [&](const std::string& text, const std::string& prefix, const char* mark,
                         int64_t* before) {
      EXPECT_TRUE(WriteFileAtomically(Path("texts.jsonl"), text).ok());
      TokenizeOptions options;
      options.rule.kind = DocumentRule::Kind::kJsonLine;
      options.rule.key = "text";
      options.end_with = tokenizer.end_of_document();
      options.save_bytes = 1;
      options.round_bytes = 100;
      auto writer = TokenFileWriter::Create(Path(prefix), format, 257, mark);
      if (!writer.ok()) return writer.status();
      *before = (*writer)->documents();
      EXPECT_EQ(TokenFileWriter::Create(Path(prefix), format, 257, mark).status().code(),
                absl::StatusCode::kFailedPrecondition)
          << "two writers at a time";
      absl::Status status = TokenizeFiles({Path("texts.jsonl")}, tokenizer, options, writer->get());
      return status.ok() ? (*writer)->Finish() : status;
    };
    int64_t before = -1;
    ASSERT_TRUE(run(good, "straight", "mark", &before).ok());
    EXPECT_EQ(before, 0);
    EXPECT_EQ(run(bad, "cut", "mark", &before).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(before, 0);
    EXPECT_TRUE(ReadFile(Path("cut.bin.partial")).ok());
    EXPECT_FALSE(ReadFile(Path("cut.bin")).ok());
    std::string other = good;
    other[12] = 'D';
    EXPECT_THAT(std::string(run(other, "cut", "mark", &before).message()),
                testing::HasSubstr("the texts have changed: the first 2"));
    EXPECT_THAT(std::string(run("", "cut", "mark", &before).message()),
                testing::HasSubstr("the texts have changed"));
    ASSERT_TRUE(run(good, "cut", "mark", &before).ok());
    EXPECT_GT(before, 200);
    EXPECT_LE(before, 250);
    for (const char* end : {".bin", ".idx"}) {
      const auto straight = ReadFile(Path(absl::StrCat("straight", end)));
      const auto cut = ReadFile(Path(absl::StrCat("cut", end)));
      EXPECT_EQ(straight.ok(), cut.ok());
      EXPECT_TRUE(straight.value_or("") == cut.value_or("")) << end;
    }
    EXPECT_FALSE(ReadFile(Path("cut.partial")).ok());
    EXPECT_FALSE(ReadFile(Path("cut.bin.partial")).ok());
    // Left by another tokenizer, or damaged: begun anew.
    EXPECT_FALSE(run(bad, "anew", "mark", &before).ok());
    ASSERT_TRUE(run(good, "anew", "another", &before).ok());
    EXPECT_EQ(before, 0);
    EXPECT_FALSE(run(bad, "anew", "mark", &before).ok());
    std::string saved = *ReadFile(Path("anew.partial"));
    saved.back() = static_cast<char>(saved.back() ^ 1);
    ASSERT_TRUE(WriteFileAtomically(Path("anew.partial"), saved).ok());
    ASSERT_TRUE(run(good, "anew", "mark", &before).ok());
    EXPECT_EQ(before, 0);
    for (const char* prefix : {"straight", "cut", "anew"}) {
      std::remove(Path(absl::StrCat(prefix, ".bin")).c_str());
      std::remove(Path(absl::StrCat(prefix, ".idx")).c_str());
    }
  }
}

}  // namespace
}  // namespace mgc
