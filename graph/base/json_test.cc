#include "graph/base/json.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

using ::testing::HasSubstr;
using Kind = JsonValue::Kind;

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseJson(text, "f.json").status().message());
}

TEST(ParseJson, BuildsTheTreeWithLocations) {
  JsonValue root =
      ParseJson("{\n  \"a\": [1, -2.5e1,true],\n\t\"b\" : { \"c\": null }, \"d\":\"x\\n\"}", "f")
          .value();
  EXPECT_EQ(root.kind, Kind::kObject);
  ASSERT_EQ(root.members.size(), 3u);
  const JsonValue& a = root.members[0].value;
  EXPECT_EQ(root.members[0].line, 2);
  EXPECT_EQ(root.members[0].column, 3);
  EXPECT_EQ(a.column, 8);
  ASSERT_EQ(a.items.size(), 3u);
  EXPECT_EQ(a.items[0].integer, 1);
  EXPECT_EQ(a.items[1].kind, Kind::kNumber);
  EXPECT_EQ(a.items[1].number, -25);
  EXPECT_EQ(a.items[1].column, 12);
  EXPECT_TRUE(a.items[2].boolean);
  EXPECT_EQ(a.items[2].column, 19);
  const JsonValue* c = root.Find("b")->Find("c");
  EXPECT_EQ(c->kind, Kind::kNull);
  EXPECT_EQ(c->line, 3);
  EXPECT_EQ(c->column, 15);
  EXPECT_EQ(root.members[2].column, 23);
  EXPECT_EQ(root.Find("d")->text, "x\n");
  EXPECT_EQ(root.Find("e"), nullptr);
}

TEST(ParseJson, TellsIntegersFromNumbers) {
  JsonValue root = ParseJson("[9223372036854775807, 9223372036854775808, 1.0, 1e3]", "f").value();
  EXPECT_EQ(root.items[0].kind, Kind::kInteger);
  EXPECT_EQ(root.items[0].integer, std::numeric_limits<int64_t>::max());
  for (int i = 1; i < 4; ++i) EXPECT_EQ(root.items[i].kind, Kind::kNumber) << i;
  EXPECT_EQ(root.items[1].number, 9223372036854775808.0);
}

TEST(ParseJson, ErrorsHaveAPlace) {
  EXPECT_THAT(ErrorOf("{\"a\": 1,\n \"b\" 2}"), HasSubstr("f.json:2:6: "));
  EXPECT_THAT(ErrorOf(""), HasSubstr("f.json:1:1: "));
  EXPECT_THAT(ErrorOf("[1] x"), HasSubstr("f.json:1:5: "));
  EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("f.json:1:"));
  EXPECT_THAT(ErrorOf("[\"\x80\"]"), HasSubstr("f.json:1:3: "));
  EXPECT_THAT(ErrorOf("[\"\x80\"]"), ::testing::Not(HasSubstr("\x80")));
  EXPECT_FALSE(ParseJson("[NaN]", "f").ok());
  EXPECT_EQ(ErrorOf(absl::string_view("[1]\0x", 5)), "f.json:1:4: a zero byte");
}

TEST(ParseJson, ReportsEveryRepeatedKey) {
  EXPECT_EQ(ErrorOf("{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2},\n \"a\": 3}"),
            "f.json:1:24: the key \"c\" is given twice\nf.json:2:2: the key \"a\" is given twice");
  EXPECT_TRUE(ParseJson("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 1}]}", "f").ok());
}

TEST(ParseJson, RefusesDeepNesting) {
  std::string legal = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(ParseJson(legal, "f").ok());
  EXPECT_EQ(ErrorOf(std::string(1000000, '[')), "f.json:1:65: values are nested deeper than 64");
}

TEST(ParseJson, SurvivesRandomBytes) {
  const unsigned seed = 20240801;
  std::mt19937 random(seed);
  const std::string alphabet = "{}[]\",:0123456789-+.eE truefalsn\\u\n\xff\xc3\xa9";
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = random() % 12; i >= 0; --i) text += alphabet[random() % alphabet.size()];
    auto result = ParseJson(text, "f");
    parsed += result.ok();
    if (result.ok()) continue;
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("f:")) << "seed " << seed;
  }
  EXPECT_GT(parsed, 0) << "seed " << seed;
  EXPECT_LT(parsed, 10000) << "seed " << seed;
}

TEST(JsonQuote, EscapesAndReadsBack) {
  EXPECT_EQ(JsonQuote("a\"b\\\n\x01"), "\"a\\\"b\\\\\\n\\u0001\"");
  EXPECT_EQ(JsonQuote("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(ParseJson(JsonQuote("\xc3\xa9\t/"), "f")->text, "\xc3\xa9\t/");
}

TEST(JsonNumber, IsShortestAndExact) {
  EXPECT_EQ(JsonNumber(0.1), "0.1");
  EXPECT_EQ(JsonNumber(3), "3");
  EXPECT_EQ(JsonNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
  EXPECT_EQ(JsonNumber(-std::numeric_limits<double>::infinity()), "\"-Infinity\"");
  for (double value : {1e-300, 5e-324, 1.7976931348623157e308, -0.30000000000000004, 1e22}) {
    EXPECT_EQ(ParseJson(JsonNumber(value), "f")->number, value);
  }
}

}  // namespace
}  // namespace mgc
