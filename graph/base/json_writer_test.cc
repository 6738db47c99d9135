#include "graph/base/json_writer.h"

#include <limits>
#include <utility>

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(JsonWriterTest, SeparatesAndQuotes) {
  JsonWriter json;
  json.BeginObject().String("name", "a\"b").Key("sizes").Integers({1, 2}).Key("none").BeginArray();
  json.EndArray().Bool("proved", true).Key("at").Null().EndObject();
  EXPECT_EQ(std::move(json).Finish(),
            "{\"name\": \"a\\\"b\", \"sizes\": [1, 2], \"none\": [], \"proved\": true, "
            "\"at\": null}\n");
}

TEST(JsonWriterTest, CompactHasNoBlanks) {
  JsonWriter json(JsonStyle::kCompact);
  json.BeginObject().Integer("a", -1).Key("b").BeginArray().Bool(false).Integer(2).EndArray();
  json.EndObject();
  EXPECT_EQ(std::move(json).Text(), "{\"a\":-1,\"b\":[false,2]}");
}

TEST(JsonWriterTest, NumbersReadBackExactly) {
  JsonWriter json(JsonStyle::kCompact);
  json.BeginArray().Number(0.1 + 0.2).Number(std::numeric_limits<double>::quiet_NaN());
  json.Thousandths(999).Thousandths(1000000001).Thousandths(0).EndArray();
  EXPECT_EQ(std::move(json).Text(), "[0.30000000000000004,\"NaN\",0.999,1000000.001,0.000]");
}

TEST(JsonWriterTest, LinesAreIndented) {
  JsonWriter json;
  json.BeginObject().NewLine(2).Integer("a", 1).NewLine(2).Key("b").BeginArray().NewLine();
  json.Integer(2).NewLine().EndArray().NewLine().EndObject();
  EXPECT_EQ(std::move(json).Text(), "{\n  \"a\": 1,\n  \"b\": [\n2\n]\n}");
}

}  // namespace
}  // namespace mgc
