#include "runtime/data/tokens/token_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "runtime/data/tokens/token_file_writer.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenFileTest : public ::testing::Test {
 protected:
  std::string Path(absl::string_view name) const {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    return absl::StrCat(::testing::TempDir(), "/", test, "-", name);
  }
  void Write(absl::string_view name, absl::string_view bytes) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
  }
  std::string ErrorOf(absl::string_view name) const {
    return std::string(TokenFile::Open(Path(name)).status().message());
  }
};

std::vector<int32_t> AllOf(const TokenFile& file) {
  std::vector<int32_t> tokens(static_cast<size_t>(file.tokens()));
  EXPECT_TRUE(file.Read(0, 0, absl::MakeSpan(tokens)).ok());
  return tokens;
}

// A pair of two documents, 1 2 3 and 4, by the format's description alone.
std::string IdxBytes() {
  std::string bytes("MMIDIDX\0\0", 9);
  AppendNumber(1, 8, &bytes);
  AppendNumber(8, 1, &bytes);  // u16
  AppendNumber(2, 8, &bytes);
  AppendNumber(3, 8, &bytes);
  for (const uint64_t length : {3, 1}) AppendNumber(length, 4, &bytes);
  for (const uint64_t offset : {0, 6}) AppendNumber(offset, 8, &bytes);
  for (const uint64_t document : {0, 1, 2}) AppendNumber(document, 8, &bytes);
  return bytes;
}
constexpr absl::string_view kBin = absl::string_view("\1\0\2\0\3\0\4\0", 8);

TEST_F(TokenFileTest, APairByAnyOfItsNames) {
  Write("p.bin", kBin);
  Write("p.idx", IdxBytes());
  for (const char* name : {"p", "p.bin", "p.idx"}) {
    const auto file = TokenFile::Open(Path(name));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->format(), TokenFormat::kMegatron);
    EXPECT_THAT(AllOf(**file), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ((*file)->documents(), 2);
    EXPECT_EQ(*(*file)->DocumentBegin(1), 3);
    EXPECT_EQ(*(*file)->DocumentBegin(2), 4);
  }
  Write("p.idx", IdxBytes() + std::string(2, '\0'));  // with modes
  EXPECT_TRUE(TokenFile::Open(Path("p")).ok());
}

TEST_F(TokenFileTest, WritesAndReadsEveryFormat) {
  const std::vector<std::vector<int32_t>> documents = {{1, 2, 65535}, {}, {7}};
  for (const auto& [format, vocabulary, type] :
       {std::make_tuple(TokenFormat::kMegatron, 70000, TokenType::kI32),
        std::make_tuple(TokenFormat::kNanoGpt, 65536, TokenType::kU16),
        std::make_tuple(TokenFormat::kLlmC, 65536, TokenType::kU16),
        std::make_tuple(TokenFormat::kLlmC, 65537, TokenType::kU32)}) {
    const std::string prefix = Path(absl::StrCat(NameOf(format), vocabulary));
    auto writer = TokenFileWriter::Create(prefix, format, vocabulary);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const auto& document : documents) ASSERT_TRUE((*writer)->Append(document).ok());
    EXPECT_FALSE(ReadFile(prefix + ".bin").ok()) << "there before it is whole";
    ASSERT_TRUE((*writer)->Finish().ok());
    const auto file = TokenFile::Open(prefix + ".bin");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->format(), format);
    EXPECT_EQ((*file)->type(), type);
    EXPECT_THAT(AllOf(**file), ElementsAre(1, 2, 65535, 7));
    if (format == TokenFormat::kMegatron) {
      EXPECT_EQ(*(*file)->DocumentBegin(2), 3);
    }
  }
  EXPECT_THAT(
      std::string(
          TokenFileWriter::Create(Path("x"), TokenFormat::kNanoGpt, 65537).status().message()),
      HasSubstr("hold ids below 65536, and the vocabulary has 65537"));
}

TEST_F(TokenFileTest, AWriterThatIsGivenUpLeavesWhatWasThere) {
  Write("p.bin", kBin);
  Write("p.idx", IdxBytes());
  {
    auto writer = TokenFileWriter::Create(Path("p"), TokenFormat::kMegatron, 100);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append({9, 9}).ok());
  }
  EXPECT_THAT(AllOf(**TokenFile::Open(Path("p"))), ElementsAre(1, 2, 3, 4));
}

TEST_F(TokenFileTest, TokensAreCheckedWhenTheyAreRead) {
  Write("a.bin", kBin);
  const auto file = *TokenFile::Open(Path("a.bin"));
  EXPECT_EQ(file->format(), TokenFormat::kNanoGpt);
  std::vector<int32_t> tokens(2);
  EXPECT_TRUE(file->Read(1, 4, absl::MakeSpan(tokens)).ok());
  EXPECT_EQ(
      file->Read(2, 4, absl::MakeSpan(tokens)).message(),
      EscapeBytes(Path("a.bin")) + ": token 3 is 4, outside the vocabulary of 4 (legal: 0 to 3)");
  Write("a.bin", "\1");  // what was opened is another file, and whole
  EXPECT_TRUE(file->Read(2, 5, absl::MakeSpan(tokens)).ok());
}

TEST_F(TokenFileTest, TokensAreLookedAtBefore) {
  std::string bytes;
  for (int64_t i = 0; i < 100000; ++i)
    AppendNumber(i == 70001 || i == 90000 ? i / 10 : 7, 2, &bytes);
  Write("a.bin", bytes);
  const auto file = *TokenFile::Open(Path("a.bin"));
  const std::string name = EscapeBytes(Path("a.bin"));
  EXPECT_EQ(file->CheckVocabulary(0, 100000, 100, 100000).message(),
            name +
                ": token 70001 is 7000, outside the vocabulary of 100 (legal: 0 to 99); of 100000 "
                "tokens looked at 2 are outside, the largest is 9000");
  EXPECT_EQ(file->CheckVocabulary(70002, 100000, 8000, 100000).message(),
            name +
                ": token 90000 is 9000, outside the vocabulary of 8000 (legal: 0 to 7999); of "
                "29998 tokens looked at 1 is outside, the largest is 9000");
  EXPECT_TRUE(file->CheckVocabulary(0, 70001, 8, 100000).ok());
  EXPECT_TRUE(file->CheckVocabulary(5, 5, 1, 100000).ok());
  ASSERT_EQ(truncate(Path("a.bin").c_str(), 0), 0);
  EXPECT_FALSE(file->CheckVocabulary(0, 1, 65535, 100000).ok());
  EXPECT_TRUE(file->CheckVocabulary(0, 1, 65536, 100000).ok()) << "no u16 is outside";
}

// Of a file of three pieces of 2^20 tokens, one with a wrong token, as many are looked at as asked.
TEST_F(TokenFileTest, OfManyTokensSomeAreLookedAt) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  for (const int64_t wrong : {kPiece / 2, 5 * kPiece / 2}) {
    Write("a.bin", "");
    ASSERT_EQ(truncate(Path("a.bin").c_str(), 3 * kPiece * 2), 0);
    const int file = open(Path("a.bin").c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(file, "\xff\xff", 2, 2 * wrong), 2);
    ASSERT_EQ(close(file), 0);
    const auto tokens = *TokenFile::Open(Path("a.bin"));
    EXPECT_EQ(tokens->CheckVocabulary(0, 3 * kPiece, 9, kPiece).ok(), wrong > kPiece);
    EXPECT_TRUE(tokens->CheckVocabulary(0, 3 * kPiece, 65536, kPiece).ok());
    EXPECT_THAT(std::string(tokens->CheckVocabulary(0, 3 * kPiece, 9, 3 * kPiece).message()),
                HasSubstr(absl::StrCat("token ", wrong, " is 65535, outside the vocabulary of 9")));
  }
}

TEST_F(TokenFileTest, MockTokensFollowFromTheSeed) {
  const auto mock = TokenFile::Mock(3, 1000);
  EXPECT_EQ(mock->tokens(), TokenFile::kMockTokens);
  std::vector<int32_t> all(1000);
  ASSERT_TRUE(mock->Read(TokenFile::kMockTokens - 1000, 1000, absl::MakeSpan(all)).ok());
  int64_t starts = 0;
  for (size_t i = 1; i < all.size(); ++i) starts += all[i] != (all[i - 1] + 1) % 1000 ? 1 : 0;
  EXPECT_EQ(starts, 1000 / TokenFile::kMockRun) << "runs count up";
  std::vector<int32_t> some(100);
  ASSERT_TRUE(mock->Read(TokenFile::kMockTokens - 900, 1000, absl::MakeSpan(some)).ok());
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 100));
  ASSERT_TRUE(
      TokenFile::Mock(4, 1000)->Read(TokenFile::kMockTokens - 900, 0, absl::MakeSpan(some)).ok());
  EXPECT_FALSE(std::equal(some.begin(), some.end(), all.begin() + 100));
  EXPECT_THAT(std::string(mock->Read(0, 1, absl::MakeSpan(some)).message()),
              HasSubstr("mock data: token 0 is "));
  EXPECT_TRUE(mock->CheckVocabulary(0, mock->tokens(), 1000, 1).ok());
}

TEST_F(TokenFileTest, AFileThatHasBecomeShorterIsAnError) {
  Write("a", std::string(100000, 'x'));
  const auto file = *TokenFile::Open(Path("a"));
  ASSERT_EQ(truncate(Path("a").c_str(), 50000), 0);
  std::vector<int32_t> tokens(10);
  EXPECT_TRUE(file->Read(100, 0, absl::MakeSpan(tokens)).ok());
  EXPECT_THAT(std::string(file->Read(49995, 0, absl::MakeSpan(tokens)).message()),
              HasSubstr("it ends at byte 50000; it had 100000 when it was opened"));
}

TEST_F(TokenFileTest, RefusesHeadersThatLie) {
  Write("odd.bin", "abc");
  EXPECT_THAT(ErrorOf("odd.bin"), HasSubstr("3 bytes, which are no whole tokens of u16"));
  std::string llmc;
  for (const uint64_t word : {20240520, 2, 4}) AppendNumber(word, 4, &llmc);
  Write("l.bin", llmc);
  EXPECT_THAT(ErrorOf("l.bin"), HasSubstr("12 bytes, and its header would have 1024"));
  llmc.resize(1024 + 6);
  Write("l.bin", llmc);
  EXPECT_THAT(ErrorOf("l.bin"), HasSubstr("version 2; of magic number 20240520 version 1 is read"));
  llmc[4] = 1;
  Write("l.bin", llmc);
  EXPECT_THAT(ErrorOf("l.bin"), HasSubstr("4 tokens of u16, and it has 1030 bytes, not 1032"));
  Write("p.bin", kBin);
  const auto idx_error = [&](size_t at, char byte) {
    std::string idx = IdxBytes();
    idx[at] = byte;
    Write("p.idx", idx);
    return ErrorOf("p");
  };
  EXPECT_THAT(idx_error(0, 'X'), HasSubstr("not with MMIDIDX"));
  EXPECT_THAT(idx_error(9, 2), HasSubstr("version 2; version 1 is read"));
  EXPECT_THAT(idx_error(17, 6), HasSubstr("tokens of type 6 (f64)"));
  EXPECT_THAT(idx_error(18, 3), HasSubstr("3 sequences and 3 entries"));
  EXPECT_THAT(idx_error(25, 127), HasSubstr("sequences and 3 entries"));
  EXPECT_THAT(idx_error(26, 0), HasSubstr("2 sequences and 0 entries"));
  EXPECT_THAT(idx_error(34, 2), HasSubstr("sequence 1 begins at byte 6; those before it end at 4"));
  EXPECT_THAT(idx_error(37, -1), HasSubstr("sequence 0 has the length -"));
  EXPECT_THAT(idx_error(38, 2), HasSubstr("sequence 1 ends at byte 10, and the .bin has 8"));
  EXPECT_THAT(idx_error(38, 0), HasSubstr("take 6 bytes of u16, and the .bin has 8"));
  EXPECT_THAT(idx_error(58, 1), HasSubstr("document 0 begins with sequence 1"));
  EXPECT_THAT(idx_error(66, 3), HasSubstr("document 1 begins with sequence 3"));
  EXPECT_THAT(idx_error(74, 1), HasSubstr("document 2 begins with sequence 1"));
}

// Any damage is an error or a file that can be read to its end.
TEST_F(TokenFileTest, DamagedIdxNeverCrashes) {
  Write("p.bin", kBin);
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::string idx = IdxBytes();
    for (uint32_t i = 0; i <= random() % 3; ++i) {
      idx[random() % idx.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) idx.resize(random() % idx.size());
    Write("p.idx", idx);
    const auto file = TokenFile::Open(Path("p"));
    if (!file.ok()) continue;
    AllOf(**file);
    for (int64_t d = 0; d <= (*file)->documents().value_or(0); ++d) {
      EXPECT_LE((*file)->DocumentBegin(d).value_or(0), (*file)->tokens()) << "seed " << seed;
    }
  }
}

TEST_F(TokenFileTest, WhatIsNoFile) {
  EXPECT_THAT(ErrorOf("none"), HasSubstr("No such file"));
  EXPECT_THAT(std::string(TokenFile::Open(::testing::TempDir()).status().message()),
              HasSubstr("directory"));
  EXPECT_FALSE(TokenFile::Open("/dev/zero").ok());
}

}  // namespace
}  // namespace mgc
