#include "frontends/tokenize/tokenizer.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontends/tokenize/characters.h"
#include "frontends/tokenize/read_tokenizer.h"
#include "frontends/tokenize/train_bpe.h"
#include "frontends/tokenize/write_tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;

// Tokens of two letters and more, with the merges that make them; the bytes are in their order.
TokenizerParts PartsOf(const std::vector<std::pair<std::string, std::string>>& merges) {
  TokenizerParts parts;
  for (int byte = 0; byte < 256; ++byte) parts.tokens.emplace_back(1, static_cast<char>(byte));
  const auto find = [&parts](const std::string& bytes) {
    const auto found = std::find(parts.tokens.begin(), parts.tokens.end(), bytes);
    return static_cast<TokenId>(found - parts.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    const TokenId merged = find(left + right);
    if (static_cast<size_t>(merged) == parts.tokens.size()) parts.tokens.push_back(left + right);
    parts.merges.push_back({find(left), find(right), merged});
  }
  return parts;
}

// The tokens of a text, as their bytes.
std::vector<std::string> Pieces(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<TokenId> tokens;
  Encoder(tokenizer).Append(text, &tokens);
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size());
  for (const TokenId token : tokens) pieces.push_back(tokenizer.TextOf(token));
  return pieces;
}

std::string Decoded(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<TokenId> tokens;
  Encoder(tokenizer).Append(text, &tokens);
  std::string decoded;
  EXPECT_TRUE(tokenizer.Decode(tokens, &decoded).ok());
  return decoded;
}

// What the merge rule says, by looking at all neighbours again and again.
std::vector<TokenId> MergedSlowly(const Vocabulary& vocabulary, absl::string_view word) {
  std::vector<TokenId> tokens;
  for (const char c : word) tokens.push_back(vocabulary.OfByte(static_cast<unsigned char>(c)));
  while (true) {
    size_t best = tokens.size();
    int32_t rank = Vocabulary::kNoRank;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const int32_t here = vocabulary.RankOf(tokens[i], tokens[i + 1]);
      if (here == Vocabulary::kNoRank || (rank != Vocabulary::kNoRank && here >= rank)) continue;
      best = i;
      rank = here;
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = vocabulary.merges()[static_cast<size_t>(rank)].merged;
    tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(TokenizerTest, MergesByRankFromTheLeft) {
  const Tokenizer tokenizer(PartsOf({{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"a", "a"}}));
  EXPECT_THAT(Pieces(tokenizer, "abcab"), ElementsAre("abc", "ab"));
  EXPECT_THAT(Pieces(tokenizer, "aaaaa"), ElementsAre("aa", "aa", "a"));
}

TEST(TokenizerTest, MergesAsTheRuleSaysOnRandomWords) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    WordCounts counts(SplitPattern::kGpt2);
    const auto word = [&random](size_t size) {
      std::string text(size, 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 3);
      return text;
    };
    for (int i = 0; i < 20; ++i) counts.Add(word(1 + random() % 12));
    const Tokenizer tokenizer = TrainBpe(counts, kLeastTrainedVocabulary + 1 + random() % 40);
    const std::string text = word(random() % 60);
    std::vector<TokenId> tokens;
    WordMerger(tokenizer.vocabulary()).Append(text, &tokens);
    EXPECT_EQ(tokens, MergedSlowly(tokenizer.vocabulary(), text)) << "seed " << seed;
  }
}

TEST(TokenizerTest, WholeWordsFirst) {
  TokenizerParts parts = PartsOf({{"a", "b"}});
  parts.tokens.emplace_back("abc");
  parts.whole_words_first = true;
  const Tokenizer tokenizer(std::move(parts));
  EXPECT_THAT(Pieces(tokenizer, "abc"), ElementsAre("abc"));
  EXPECT_THAT(Pieces(tokenizer, "abcd"), ElementsAre("ab", "c", "d"));
  // An added token that is not taken where it stands is no word either.
  AddedToken word;
  word.id = 300;
  word.content = "cat";
  word.single_word = true;
  TokenizerParts with_added = PartsOf({{"a", "t"}});
  with_added.added = {word};
  with_added.whole_words_first = true;
  EXPECT_THAT(Pieces(Tokenizer(std::move(with_added)), "1cat"), ElementsAre("1", "c", "at"));
}

TEST(TokenizerTest, AddedTokensAreFoundFirst) {
  TokenizerParts parts = PartsOf({{"<", "e"}});
  AddedToken end;
  end.id = 300;
  end.content = "<end>";
  AddedToken longer = end;
  longer.id = 301;
  longer.content = "<end>!";
  AddedToken stripped = end;
  stripped.id = 302;
  stripped.content = "[m]";
  stripped.lstrip = true;
  stripped.rstrip = true;
  AddedToken word = end;
  word.id = 303;
  word.content = "cat";
  word.single_word = true;
  parts.added = {end, longer, stripped, word};
  const Tokenizer tokenizer(std::move(parts));
  EXPECT_EQ(tokenizer.vocabulary_size(), 304);
  EXPECT_EQ(*tokenizer.Find("<end>"), 300);
  const auto ids = [&tokenizer](absl::string_view text) {
    std::vector<TokenId> tokens;
    Encoder(tokenizer).Append(text, &tokens);
    return tokens;
  };
  EXPECT_THAT(ids("a<end><end>!"), ElementsAre('a', 300, 301));
  EXPECT_THAT(ids("a  [m]\n b"), ElementsAre('a', 302, 'b'));
  EXPECT_THAT(ids("cat cats"), ElementsAre(303, ' ', 'c', 'a', 't', 's'));
  EXPECT_THAT(ids("<en"), ElementsAre('<', 'e', 'n')) << "of two words";
}

TEST(TokenizerTest, AnyBytesReadBack) {
  WordCounts counts(SplitPattern::kLlama3);
  counts.Add("the quick brown fox's 12345 d\xc3\xa9j\xc3\xa0 vu \xf0\x9f\x98\x80 \xe4\xb8\xad");
  const Tokenizer tokenizer = TrainBpe(counts, 290);
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::string text(random() % 200, '\0');
    for (char& c : text) {
      c = static_cast<char>(random() % 3 == 0 ? random() % 256
                                              : " \n\xc3\xa9\xe4\xb8'1aZ"[random() % 10]);
    }
    EXPECT_EQ(Decoded(tokenizer, text), text) << "seed " << seed;
    EXPECT_EQ(Decoded(ByteTokenizer(), text), text) << "seed " << seed;
  }
}

// A word of a megabyte takes as long as a megabyte of words, not its square.
TEST(TokenizerTest, LongWords) {
  WordCounts counts(SplitPattern::kGpt2);
  counts.Add("aaaaaaaa abababab");
  const Tokenizer tokenizer = TrainBpe(counts, 270);
  const std::string word(size_t{1} << 20, 'a');
  EXPECT_LT(Pieces(tokenizer, word).size(), word.size() / 3);
  EXPECT_EQ(
      Decoded(tokenizer, std::string(size_t{1} << 20, ' ') + word + std::string(1000, '\n')).size(),
      (size_t{2} << 20) + 1000);
}

TEST(TokenizerTest, DecodingNamesAnIdThatIsNone) {
  std::string text;
  EXPECT_EQ(ByteTokenizer().Decode({'a', 257}, &text).message(),
            "token 1 is 257, outside the vocabulary of 257");
}

TEST(CharactersTest, WhatIsNotUtf8IsSingleBytes) {
  const auto sizes = [](absl::string_view text) {
    std::vector<size_t> bytes;
    for (size_t at = 0; at < text.size(); at += bytes.back()) {
      const Character character = CharacterAt(text, at);
      bytes.push_back(character.bytes);
      EXPECT_EQ(character.code_point < 0, character.bytes == 1 && (text[at] & 0x80) != 0);
    }
    return bytes;
  };
  EXPECT_THAT(sizes("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(sizes("\xc0\x80"), ElementsAre(1, 1)) << "overlong";
  EXPECT_THAT(sizes("\xe0\x9f\xbf"), ElementsAre(1, 1, 1)) << "overlong";
  EXPECT_THAT(sizes("\xed\xa0\x80"), ElementsAre(1, 1, 1)) << "a surrogate";
  EXPECT_THAT(sizes("\xf4\x90\x80\x80"), ElementsAre(1, 1, 1, 1)) << "above U+10FFFF";
  EXPECT_THAT(sizes("\xe2\x82"), ElementsAre(1, 1)) << "cut";
}

TEST(CharactersTest, NormalizesWhatIsUtf8) {
  EXPECT_EQ(NormalizedNfc("e\xcc\x81\xff"
                          "e\xcc\x81"),
            "\xc3\xa9\xff\xc3\xa9");
}

std::vector<std::string> Words(SplitPattern pattern, absl::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = WordEnd(pattern, text, at);
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

TEST(SplitPatternTest, Families) {
  const char text[] = "I'll  it'S 12345\tx!\n\n  y ...\r\nz   ";
  EXPECT_THAT(Words(SplitPattern::kGpt2, text),
              ElementsAre("I", "'ll", " ", " it", "'", "S", " 12345", "\t", "x", "!", "\n\n ", " y",
                          " ...", "\r", "\n", "z", "   "));
  EXPECT_THAT(Words(SplitPattern::kLlama3, text),
              ElementsAre("I", "'ll", " ", " it", "'S", " ", "123", "45", "\tx", "!\n\n", " ", " y",
                          " ...\r\n", "z", "   "));
  EXPECT_THAT(Words(SplitPattern::kQwen2, "a 123"), ElementsAre("a", " ", "1", "2", "3"));
  EXPECT_THAT(Words(SplitPattern::kLlama3, " \n \n x"), ElementsAre(" \n \n", " x"));
}

TEST(TrainBpeTest, TiesTakeTheSmallerIds) {
  WordCounts counts(SplitPattern::kGpt2);
  counts.Add("ba");
  counts.Add("ab");
  const Tokenizer tokenizer = TrainBpe(counts, 300);
  EXPECT_EQ(tokenizer.vocabulary_size(), 259) << "no neighbours are left";
  EXPECT_EQ(tokenizer.vocabulary().BytesOf(257), "ab");
  EXPECT_EQ(tokenizer.vocabulary().BytesOf(258), "ba");
  EXPECT_EQ(*tokenizer.end_of_document(), 0);
}

TEST(WriteTokenizerTest, ReadsBack) {
  for (const SplitPattern pattern :
       {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    WordCounts counts(pattern);
    counts.Add("the cat, the \"hat\" \\ the d\xc3\xa9j\xc3\xa0 vu 12 12 12");
    const Tokenizer tokenizer = TrainBpe(counts, 300);
    const std::string text = TokenizerJsonText(tokenizer);
    const auto again = ParseTokenizerJson(text, "t");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->pattern(), pattern);
    EXPECT_EQ(again->end_of_document(), tokenizer.end_of_document());
    EXPECT_EQ(TokenizerJsonText(*again), text);
  }
}

}  // namespace
}  // namespace mgc
