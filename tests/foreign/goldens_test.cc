// Tokens of texts of many scripts beside those that the `tokenizers` library gives.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontends/tokenize/read_tokenizer.h"
#include "frontends/tokenize/train_bpe.h"
#include "frontends/tokenize/write_tokenizer.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

struct Golden {
  std::string text;
  std::vector<TokenId> tokens;
};

std::vector<Golden> ReadGoldens(const std::string& path) {
  std::vector<Golden> goldens;
  const auto content = ReadFile(path);
  EXPECT_TRUE(content.ok()) << content.status();
  for (const absl::string_view line :
       absl::StrSplit(content.value_or(""), '\n', absl::SkipEmpty())) {
    const auto value = ParseJson(line, path);
    if (!value.ok()) {
      ADD_FAILURE() << value.status();
      continue;
    }
    Golden golden;
    golden.text = value->Find("text")->text;
    for (const JsonValue& token : value->Find("tokens")->items) {
      golden.tokens.push_back(static_cast<TokenId>(token.integer));
    }
    goldens.push_back(std::move(golden));
  }
  EXPECT_GT(goldens.size(), 100u);
  return goldens;
}

class GoldensTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Path(absl::string_view name) const {
    return absl::StrCat("tests/foreign/", GetParam(), ".", name);
  }
};

TEST_P(GoldensTest, TokensAreThoseOfAnotherLibrary) {
  const auto tokenizer = ReadTokenizer(Path("tokenizer.json"));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  Encoder encoder(*tokenizer);
  for (const Golden& golden : ReadGoldens(Path("tokens.jsonl"))) {
    std::vector<TokenId> tokens;
    encoder.Append(golden.text, &tokens);
    EXPECT_EQ(tokens, golden.tokens) << golden.text;
    std::string text;
    ASSERT_TRUE(tokenizer->Decode(tokens, &text).ok());
    EXPECT_EQ(text, golden.text);
  }
}

// The file was trained on these texts; another library trains the same (tests/foreign/compare.py).
TEST_P(GoldensTest, TheSameTextsTrainTheSameFile) {
  const auto file = ReadFile(Path("tokenizer.json"));
  ASSERT_TRUE(file.ok()) << file.status();
  WordCounts counts(*SplitPatternNamed(GetParam()));
  for (const Golden& golden : ReadGoldens(Path("tokens.jsonl"))) counts.Add(golden.text);
  EXPECT_EQ(TokenizerJsonText(TrainBpe(counts, 700)), *file);
}

INSTANTIATE_TEST_SUITE_P(Patterns, GoldensTest, ::testing::Values("gpt2", "llama3", "qwen2"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mgc
