#include "frontends/tokenize/read_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "frontends/tokenize/byte_alphabet.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The ids of all bytes, and of `more`.
std::string VocabularyText(absl::string_view more) {
  std::string text = "{";
  for (int byte = 0; byte < 256; ++byte) {
    absl::StrAppend(&text, byte == 0 ? "" : ", ",
                    JsonQuote(SpellBytes(std::string(1, static_cast<char>(byte)))), ": ", byte);
  }
  return absl::StrCat(text, more, "}");
}

constexpr char kByteLevel[] =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";

std::string TokenizerText() {
  return absl::StrCat(R"({"version": "1.0", "added_tokens": [
    {"id": 258, "content": "<|endoftext|>", "special": true}], "normalizer": null,
    "pre_tokenizer": )",
                      kByteLevel, R"(, "decoder": )", kByteLevel, R"(,
    "model": {"type": "BPE", "dropout": null, "vocab": )",
                      VocabularyText(R"(, "he": 256, "Ġhe": 257)"),
                      R"(, "merges": ["h e", ["Ġ", "he"]]}})");
}

std::vector<TokenId> Tokens(const Tokenizer& tokenizer, absl::string_view text) {
  std::vector<TokenId> tokens;
  Encoder(tokenizer).Append(text, &tokens);
  return tokens;
}

TEST(ReadTokenizerTest, BothFormsOfMerges) {
  const auto tokenizer = ParseTokenizerJson(TokenizerText(), "t.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->vocabulary_size(), 259);
  EXPECT_EQ(*tokenizer->end_of_document(), 258);
  EXPECT_THAT(Tokens(*tokenizer, "he he<|endoftext|>"), ElementsAre(256, 257, 258));
}

// Each change of the file, and a part of the message.
TEST(ReadTokenizerTest, RefusesWhatWouldChangeTokens) {
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } kCases[] = {
      {"\"normalizer\": null", "\"normalizer\": {\"type\": \"Lowercase\"}", "[J5]"},
      {"\"dropout\": null", "\"dropout\": 0.1", "must be null"},
      {"\"dropout\": null", "\"byte_fallback\": true", "byte_fallback"},
      {"\"dropout\": null", "\"end_of_word_suffix\": \"</w>\"", "end_of_word_suffix"},
      {"\"type\": \"BPE\"", "\"type\": \"Unigram\"", "[J5]"},
      {"\"type\": \"BPE\"", "\"type\": \"BPE\", \"new\": 1", "[J1]"},
      {"\"add_prefix_space\": false", "\"add_prefix_space\": true", "add_prefix_space"},
      {"\"use_regex\": true", "\"use_regex\": false", "use_regex"},
      {"\"h e\"", "\"h x\"", "the merge of `h` and `x` gives no token [K2]"},
      {"\"h e\"", "\"h ee\"", "`ee` is no token [K2]"},
      {"\"h e\"", "\"h e\", \"h e\"", "stands there twice [K2]"},
      {"\"h e\"", "7", "[K2]"},
      {"\"he\": 256", "\"he\": 97", "the id is that of `a` [K1]"},
      {"\"he\": 256", "\"he\": -1", "is not from 0 to 4194304 [K1]"},
      {"\"he\": 256", "\"he\": \"x\"", "must be an integer"},
      {"\"he\": 256", "\"h e\": 256", "spells no bytes"},
      {"\"a\": 97, ", "", "no token for 1 of the 256 bytes: a [K1]"},
      {"\"id\": 258", "\"id\": 257", "the id is that of `<|endoftext|>` [K1]"},
      {"\"content\": \"<|endoftext|>\"", "\"content\": 3", "must be a string"},
  };
  for (const auto& c : kCases) {
    const std::string text = absl::StrReplaceAll(TokenizerText(), {{c.from, c.to}});
    ASSERT_NE(text, TokenizerText()) << c.from;
    EXPECT_THAT(std::string(ParseTokenizerJson(text, "t.json").status().message()),
                HasSubstr(c.message))
        << c.to;
  }
  EXPECT_FALSE(ParseTokenizerJson("[]", "t.json").ok());
  EXPECT_FALSE(ParseTokenizerJson("", "t.json").ok());
}

// Any damage is an error, or a tokenizer whose tokens read back.
TEST(ReadTokenizerTest, DamagedFilesNeverCrash) {
  const std::string whole = TokenizerText();
  const std::string text = "he said: the \xc3\xa9\xff<|endoftext|>";
  int read = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::string damaged = whole;
    for (uint32_t i = 0; i <= random() % 2; ++i) {
      damaged[random() % damaged.size()] = whole[random() % whole.size()];
    }
    if (random() % 8 == 0) damaged.erase(random() % damaged.size(), random() % 50);
    const auto tokenizer = ParseTokenizerJson(damaged, "t.json");
    if (!tokenizer.ok()) continue;
    ++read;
    std::string decoded;
    EXPECT_TRUE(tokenizer->Decode(Tokens(*tokenizer, text), &decoded).ok()) << "seed " << seed;
    EXPECT_EQ(decoded, text) << "seed " << seed;
  }
  EXPECT_GT(read, 10);
}

TEST(ReadTokenizerTest, Gpt2Files) {
  const std::string vocabulary = VocabularyText(R"(, "he": 256, "<|endoftext|>": 257)");
  const auto tokenizer =
      ParseGpt2Files({vocabulary, "vocab.json"}, {"#version: 0.2\nh e\r\n", "merges.txt"});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(Tokens(*tokenizer, "he<|endoftext|>"), ElementsAre(256, 257));
  EXPECT_EQ(ParseGpt2Files({vocabulary, "vocab.json"}, {"#version: 0.2\nh e\nhe\n", "merges.txt"})
                .status()
                .message(),
            "merges.txt:3:1: the merge of `he` and ``: `` is no token [K2]");
  EXPECT_FALSE(ParseGpt2Files({"[]", "vocab.json"}, {"", "merges.txt"}).ok());
}

TEST(ReadTokenizerTest, AFolderSaysWhatEndsDocuments) {
  const std::string folder = ::testing::TempDir();
  EXPECT_THAT(std::string(ReadTokenizer(folder).status().message()),
              HasSubstr("has neither a tokenizer.json nor a vocab.json with a merges.txt"));
  ASSERT_TRUE(WriteFileAtomically(folder + "/tokenizer.json", TokenizerText()).ok());
  EXPECT_EQ(*ReadTokenizer(folder)->end_of_document(), 258);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/tokenizer_config.json", R"({"eos_token": {"content": "he"}})")
          .ok());
  EXPECT_EQ(*ReadTokenizer(folder)->end_of_document(), 256);
  EXPECT_EQ(*ReadTokenizer(folder + "/tokenizer.json")->end_of_document(), 258);
}

}  // namespace
}  // namespace mgc
