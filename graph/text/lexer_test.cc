#include "graph/text/lexer.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/text/token_reader.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Token> LexOk(absl::string_view text) {
  FileDiagnostics diagnostics("t");
  std::vector<Token> tokens = Lex(text, &diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.ToStatus();
  return tokens;
}

uint64_t BitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::string ErrorsOf(absl::string_view text) {
  FileDiagnostics diagnostics("t");
  Lex(text, &diagnostics);
  return std::string(diagnostics.ToStatus().message());
}

std::vector<std::string> TextsOf(absl::string_view text) {
  std::vector<std::string> texts;
  for (const Token& token : LexOk(text)) texts.push_back(token.text);
  return texts;
}

TEST(LexerTest, SplitsShardingsIntoMarksAndNames) {
  EXPECT_THAT(TextsOf("@m[dp,tp.0*tp.1,-]+tp^cp/dp // rest"),
              ElementsAre("m", "[", "dp", ",", "tp.0", "*", "tp.1", ",", "-", "]", "+", "tp", "^",
                          "cp", "/", "dp", ""));
}

TEST(LexerTest, ValueNamesHoldDotsSlashesAndDigits) {
  const std::vector<Token> tokens = LexOk("%layers.3.mlp.up/grad.1: f32");
  EXPECT_EQ(tokens[0].kind, TokenKind::kValue);
  EXPECT_EQ(tokens[0].text, "layers.3.mlp.up/grad.1");
  EXPECT_EQ(tokens[1].text, ":");
}

TEST(LexerTest, PercentBehindANumberIsAMultiple) {
  const std::vector<Token> tokens = LexOk("vocab=257%128 257 %128");
  EXPECT_EQ(tokens[3].kind, TokenKind::kMark);
  EXPECT_EQ(tokens[4].integer, 128);
  EXPECT_EQ(tokens[6].kind, TokenKind::kValue);
  EXPECT_EQ(tokens[6].text, "128");
}

TEST(LexerTest, ActionWordsAreNames) {
  const std::vector<Token> tokens = LexOk("0F3 0SEND_F3 12 1e3 2B1");
  EXPECT_EQ(tokens[0].kind, TokenKind::kName);
  EXPECT_EQ(tokens[1].text, "0SEND_F3");
  EXPECT_EQ(tokens[2].kind, TokenKind::kInt);
  EXPECT_EQ(tokens[3].kind, TokenKind::kReal);
  EXPECT_EQ(tokens[4].kind, TokenKind::kName);
}

TEST(LexerTest, KnowsPlacesAndLineStarts) {
  const std::vector<Token> tokens = LexOk("a // c\n  b c\n");
  EXPECT_EQ(tokens[1].place.line, 2);
  EXPECT_EQ(tokens[1].place.column, 3);
  EXPECT_TRUE(tokens[1].starts_line);
  EXPECT_FALSE(tokens[2].starts_line);
  EXPECT_EQ(tokens[3].kind, TokenKind::kEnd);
}

TEST(LexerTest, ReportsBytesThatFormNoWord) {
  EXPECT_EQ(ErrorsOf("a $ b"), "t:1:3: unexpected byte `$` [text_c1]");
  EXPECT_EQ(ErrorsOf("\xFF"), "t:1:1: unexpected byte `\\xFF` [text_c1]");
  EXPECT_EQ(ErrorsOf(absl::string_view("\0", 1)), "t:1:1: unexpected byte `\\x00` [text_c1]");
  EXPECT_THAT(ErrorsOf("\"abc\nd"), HasSubstr("t:1:1: string without an end"));
  EXPECT_THAT(ErrorsOf("\"\\q\""), HasSubstr("t:1:3: unknown escape"));
  EXPECT_THAT(ErrorsOf("9223372036854775808"), HasSubstr("64-bit"));
  EXPECT_THAT(ErrorsOf("1e999"), HasSubstr("64-bit"));
  EXPECT_THAT(ErrorsOf("-5x"), HasSubstr("`-5x` is no number"));
  EXPECT_THAT(ErrorsOf("% x"), HasSubstr("no name behind `%`"));
}

TEST(LexerTest, RealsReadBackExactly) {
  const int seed = 20;
  std::mt19937_64 random(seed);
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -3.0,
                                0.1,
                                1e22,
                                1e-5,
                                5e-324,
                                1.7976931348623157e308,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isnan(value)) values.push_back(value);
  }
  for (double value : values) {
    const std::vector<Token> tokens = LexOk(RealText(value));
    ASSERT_EQ(tokens.size(), 2u) << RealText(value);
    EXPECT_EQ(tokens[0].kind, TokenKind::kReal) << RealText(value);
    EXPECT_EQ(BitsOf(tokens[0].real), BitsOf(value)) << RealText(value);
  }
  EXPECT_TRUE(std::isnan(LexOk(RealText(std::nan("")))[0].real));
}

TEST(LexerTest, AnyBytesReadBackAsNameValueAndString) {
  const int seed = 21;
  std::mt19937 random(seed);
  std::vector<std::string> names = {"", "a", "inf", "nan", "a//b", "a/", "3", "3x", "a b", "\n"};
  for (int i = 0; i < 500; ++i) {
    std::string name;
    for (uint32_t n = random() % 6; n > 0; --n) name += static_cast<char>(random() % 256);
    names.push_back(name);
  }
  for (const std::string& name : names) {
    // Words behind, and a comment touching, must not change what is read.
    const std::vector<Token> tokens = LexOk(absl::StrCat(
        NameText(name), " ", ValueText(name), "//x\n", SymbolText(name), " ", QuotedText(name)));
    ASSERT_EQ(tokens.size(), 5u) << QuotedText(name);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(tokens[i].text, name) << i << " " << QuotedText(name);
    EXPECT_EQ(tokens[1].kind, TokenKind::kValue);
    EXPECT_EQ(tokens[2].kind, TokenKind::kSymbol);
  }
}

TEST(TokenReaderTest, ReportsWhatItExpected) {
  FileDiagnostics diagnostics("f");
  TokenReader reader("tp = 12 x\ny", &diagnostics);
  std::string name;
  int64_t size = 0;
  EXPECT_TRUE(reader.ExpectName("an axis", &name));
  EXPECT_FALSE(reader.Expect(":"));
  EXPECT_TRUE(reader.Expect("="));
  EXPECT_FALSE(reader.ExpectInt("the size", 1, 8, &size));
  reader.SkipLine(0);
  EXPECT_TRUE(reader.At("y"));
  EXPECT_EQ(diagnostics.ToStatus().message(),
            "f:1:4: expected `:`, found `=` [text_c2]\n"
            "f:1:6: the size must be between 1 and 8, not 12 [text_c2]");
  reader.Next();
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_EQ(reader.Next().kind, TokenKind::kEnd);
  EXPECT_TRUE(reader.AtEnd());
}

}  // namespace
}  // namespace mgc
