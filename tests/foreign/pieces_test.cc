// Tokens of SentencePiece's library, by models that its Python package trained and tokens that it
// gave.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontends/pieces/piece_tokenizer.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

struct Golden {
  std::string text, decoded;
  std::vector<TokenId> tokens;
};

class PiecesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = absl::StrCat("tests/foreign/", GetParam(), ".pieces.jsonl");
    const auto content = ReadFile(path);
    ASSERT_TRUE(content.ok()) << content.status();
    for (const absl::string_view line : absl::StrSplit(*content, '\n', absl::SkipEmpty())) {
      const auto value = ParseJson(line, path);
      ASSERT_TRUE(value.ok()) << value.status();
      if (model_.empty()) {
        ASSERT_TRUE(absl::Base64Unescape(value->Find("model")->text, &model_));
        size_ = value->Find("size")->integer;
        continue;
      }
      Golden golden = {value->Find("text")->text, value->Find("decoded")->text, {}};
      for (const JsonValue& token : value->Find("tokens")->items) {
        golden.tokens.push_back(static_cast<TokenId>(token.integer));
      }
      goldens_.push_back(std::move(golden));
    }
    ASSERT_GT(goldens_.size(), 100u);
  }

  std::string model_;
  int64_t size_ = 0;
  std::vector<Golden> goldens_;
};

TEST_P(PiecesTest, TokensAndTextsAreThoseOfTheLibrary) {
  const auto tokenizer = ParsePieceModel(model_, "model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary_size(), size_);
  EXPECT_EQ((*tokenizer)->end_of_document(), (*tokenizer)->Find("</s>"));
  EXPECT_EQ((*tokenizer)->Find("</s>"), TokenId{2});
  EXPECT_EQ((*tokenizer)->Find("<unk>"), TokenId{0});
  EXPECT_FALSE((*tokenizer)->Find("no piece").has_value());
  const std::unique_ptr<TextEncoder> encoder = (*tokenizer)->NewEncoder();
  for (const Golden& golden : goldens_) {
    std::vector<TokenId> tokens = {7};
    ASSERT_TRUE(encoder->AppendTokens(golden.text, &tokens).ok());
    tokens.erase(tokens.begin());
    EXPECT_EQ(tokens, golden.tokens) << golden.text;
    std::string text;
    ASSERT_TRUE((*tokenizer)->Decode(tokens, &text).ok());
    EXPECT_EQ(text, golden.decoded);
  }
  std::string text;
  EXPECT_EQ((*tokenizer)->Decode({1, static_cast<TokenId>(size_)}, &text).message(),
            absl::StrCat("token 1 is ", size_, ", outside the vocabulary of ", size_));
  EXPECT_FALSE((*tokenizer)->Decode({-1}, &text).ok());
}

// Any damage is an error or a model that can be used.
TEST_P(PiecesTest, DamagedModelsAreRefusedOrUsed) {
  constexpr uint32_t kSeed = 20240817;
  std::mt19937 dice(kSeed);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::string model = model_;
    if (round % 3 == 0) model.resize(dice() % model.size());
    for (int i = 0; i < round % 4 && !model.empty(); ++i) {
      model[dice() % model.size()] = static_cast<char>(dice());
    }
    const auto tokenizer = ParsePieceModel(model, "model");
    if (!tokenizer.ok()) {
      ++refused;
      continue;
    }
    std::vector<TokenId> tokens;
    std::string text;
    if (!(*tokenizer)->NewEncoder()->AppendTokens(goldens_[0].text, &tokens).ok()) continue;
    EXPECT_TRUE((*tokenizer)->Decode(tokens, &text).ok());
  }
  EXPECT_GT(refused, 20);
}

INSTANTIATE_TEST_SUITE_P(Models, PiecesTest, ::testing::Values("bpe", "unigram"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Pieces, WhatIsNoModel) {
  for (const char* text : {"", "{}", "no model"}) {
    const auto tokenizer = ParsePieceModel(text, "some.model");
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_NE(tokenizer.status().message().find("some.model is no model of SentencePiece"),
              absl::string_view::npos)
        << tokenizer.status();
  }
}

}  // namespace
}  // namespace mgc
