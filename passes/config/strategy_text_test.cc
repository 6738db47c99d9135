#include "passes/config/strategy_text.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// Everything the form can say, as the printer writes it.
constexpr char kFull[] = R"(strategy @"my own" {
  split tp by kv_heads
  gather seq silent
  gather heads, "kv heads" error
  gather mlp note
  uneven vocab, "my labels"
  row (batch, *, embed) in "layers.*.mlp.*" home when sequence_parallel { seq -> cp*tp }
  row (batch, seq, embed) home
  row * when zero { mlp -> tp.0*dp, heads -> - }
  row (seq) { seq -> tp.1 }
  store states in "head.*" -> -
  store states -> dp*cp when zero
  store gradients -> dp*cp when zero2
  store parameters -> dp*cp when zero3
}
)";

TEST(StrategyTextTest, PrintsWhatItReads) {
  const absl::StatusOr<StrategySpec> spec = ParseStrategy(kFull, "mine.mgc");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(PrintStrategy(*spec), kFull);
}

TEST(StrategyTextTest, PresetsReadBack) {
  for (const StrategyPreset& preset : StrategyPresets()) {
    const absl::StatusOr<StrategySpec> spec = FindStrategyPreset(preset.name);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->name, preset.name);
    const std::string text = PrintStrategy(*spec);
    const absl::StatusOr<StrategySpec> again = ParseStrategy(text, preset.name);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(PrintStrategy(*again), text);
  }
  EXPECT_EQ(DefaultStrategy().name, kDefaultStrategy);
}

TEST(StrategyTextTest, AnUnknownPresetNamesTheNearest) {
  const absl::Status status = FindStrategyPreset("megatrom").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "did you mean megatron?")) << status;
}

struct Wrong {
  const char* line;
  const char* said;  // behind `mine.mgc:3:`
};

TEST(StrategyTextTest, ErrorsSayWhereAndWhat) {
  const std::vector<Wrong> cases = {
      {"row * { mlp -> tq }",
       "16: no axis is named tq; there are tp, cp, dp, tp.0, tp.1 [strategy_c1]"},
      {"row * { mlp -> pp }", "16: pp cuts layers, not the dims of values [strategy_c1]"},
      {"row * { mlp -> dp.0 }", "[strategy_c1]"},
      {"split tp.0 by heads", "7: a part of an axis is not split again [strategy_c1]"},
      {"split tp by heads", "7: said twice [strategy_c2]"},
      {"row * { mlp -> tp*tp }", "19: axis tp twice in a product [strategy_c2]"},
      {"row * { mlp -> tp*tp.0 }", "19: axis tp.0 twice in a product [strategy_c2]"},
      {"row * { mlp -> tp, mlp -> dp }", "20: dim mlp twice [strategy_c2]"},
      {"row * { batch -> dp }", "1: said twice [strategy_c2]"},
      {"gather seq note gather seq error", "24: said twice [strategy_c2]"},
      {"store states -> dp store states -> cp", "26: said twice [strategy_c2]"},
      {"store parameters -> dp", "7: parameters are stored in the pieces of their states"},
      {"store states -> dp when zero store gradients -> cp when zero2", "[strategy_c3]"},
      {"split dp in groups", "13: expected `zero_groups`, found `groups`"},
      {"row (batch, seq) { embed -> tp }", "20: the row's values have no dim embed [strategy_c4]"},
      {"row (batch, seq)", "17: expected `{` and the axes of a dim, found the end of the line"},
      {"row () { a -> tp }", "6: expected the name of a dim, found `)` [text_c2]"},
      {"row * when full { a -> tp }",
       "12: expected `sequence_parallel` or `zero` or `zero2` or `zero3`, found `full`"},
      {"row * in \"\" { a -> tp }", "10: a scope is not empty: `\"*\"` is everywhere [text_c2]"},
      {"row * { \"\" -> tp }", "9: a dim without a name cannot be named"},
      {"row * { }", "9: expected the name of a dim, found `}` [text_c2]"},
      {"gather seq loud", "12: expected `silent` or `note` or `error`, found `loud`"},
      {"store weights -> dp", "7: expected `states` or `gradients` or `parameters`"},
      {"rows * { a -> tp }",
       "1: expected `split`, `gather`, `uneven`, `row`, `store` or `}`, found `rows`"},
      {"uneven vocab, vocab", "15: said twice [strategy_c2]"},
      {"uneven", "[text_c2]"},
  };
  for (const Wrong& wrong : cases) {
    const std::string text = absl::StrCat(
        "strategy @s { split tp by kv_heads\nrow * { batch -> dp }\n", wrong.line, "\n}\n");
    const absl::Status status = ParseStrategy(text, "mine.mgc").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong.line;
    EXPECT_TRUE(absl::StrContains(status.message(), "mine.mgc:3:")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), wrong.said)) << wrong.line << "\n" << status;
  }
}

TEST(StrategyTextTest, AllErrorsAtOnce) {
  const absl::Status status =
      ParseStrategy("strategy @s {\n  row * { a -> x }\n  row * { b -> y }\n}", "s").status();
  EXPECT_TRUE(absl::StrContains(status.message(), "s:2:16")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "s:3:16")) << status;
}

// Every text that ends early, or lacks a byte, is read or refused with a place.
TEST(StrategyTextTest, DamagedTextsAreRefusedWithAPlace) {
  const std::string full = kFull;
  for (size_t i = 0; i < full.size(); ++i) {
    const std::string texts[] = {full.substr(0, i), full.substr(0, i) + full.substr(i + 1),
                                 full.substr(0, i) + "\x01" + full.substr(i)};
    for (const std::string& text : texts) {
      const absl::StatusOr<StrategySpec> spec = ParseStrategy(text, "s");
      if (spec.ok()) {
        EXPECT_TRUE(ParseStrategy(PrintStrategy(*spec), "again").ok()) << text;
      } else {
        EXPECT_TRUE(absl::StartsWith(spec.status().message(), "s:")) << spec.status();
      }
    }
  }
}

TEST(MatchesGlobTest, StarsStandForAnyText) {
  EXPECT_TRUE(MatchesGlob("layers.*.mlp.*", "layers.12.mlp.up"));
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_TRUE(MatchesGlob("a*b*c", "abbbc"));
  EXPECT_TRUE(MatchesGlob("**a", "bca"));
  EXPECT_FALSE(MatchesGlob("layers.*.mlp", "layers.12.mlp.up"));
  EXPECT_FALSE(MatchesGlob("a", ""));
  EXPECT_FALSE(MatchesGlob("", "a"));
  EXPECT_TRUE(MatchesGlob("", ""));
  const std::string long_text(5000, 'a');
  EXPECT_FALSE(MatchesGlob("*a*a*a*a*a*a*b", long_text));  // in time that grows as the product
}

}  // namespace
}  // namespace mgc
