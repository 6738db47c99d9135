#include "graph/base/json_reader.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mgc {
namespace {

TEST(JsonObjectReader, ReadsWhatIsThereAndFillsInDefaults) {
  JsonValue root =
      ParseJson("{\"i\": 3, \"n\": 2, \"b\": true, \"s\": \"y\", \"x\": null, \"skip\": 1}", "f")
          .value();
  FileDiagnostics problems("f");
  JsonObjectReader reader(root, "", &problems);
  EXPECT_EQ(reader.Integer("i", {1, 3}), 3);
  EXPECT_EQ(reader.Integer("j", {1, 3}, 2), 2);
  EXPECT_EQ(reader.Number("n", {0, 2}), 2.0);
  EXPECT_EQ(reader.Number("m", {0, 2}, 0.5), 0.5);
  EXPECT_TRUE(reader.Bool("b", false));
  EXPECT_TRUE(reader.Bool("c", true));
  EXPECT_EQ(reader.Choice("s", {"x", "y"}), 1u);
  EXPECT_EQ(reader.Choice("t", {"x", "y"}, 1), 1u);
  EXPECT_EQ(reader.TakeUnlessNull("x"), nullptr);
  reader.RequireNull("x", "because");
  std::vector<const JsonMember*> ignored;
  reader.Ignore({"skip", "absent"}, &ignored);
  ASSERT_EQ(ignored.size(), 1u);
  EXPECT_EQ(ignored[0]->key, "skip");
  reader.Finish();
  EXPECT_TRUE(problems.ToStatus().ok()) << problems.ToStatus();
}

TEST(JsonObjectReader, KnowsWhichValuesAreStandIns) {
  JsonValue root = ParseJson(R"({"i": "3", "n": null, "r": 7, "b": 0, "s": 1, "w": 1.0,
                    "h": 1180591620717411303424})",
                             "f")
                       .value();
  FileDiagnostics problems("f");
  JsonObjectReader reader(root, "", &problems);
  reader.Integer("i", {1, 3});
  reader.Integer("n", {1, 3});
  reader.Number("r", {0, 1});
  reader.Bool("b", false);
  reader.Choice("s", {"x"});
  reader.Integer("w", {1, 3});
  reader.Integer("h", {1, 3});
  for (const char* key : {"i", "n", "r", "b", "s", "w", "h"})
    EXPECT_TRUE(reader.Failed(key)) << key;
  const std::string text(problems.ToStatus().message());
  EXPECT_NE(text.find("w must be an integer, not a number [J2]"), std::string::npos) << text;
  EXPECT_NE(text.find("h must be from 1 to 3, not 1180591620717411303424 [J3]"), std::string::npos)
      << text;
}

TEST(JsonObjectReader, CollectsEveryProblemInTheFilesOrder) {
  JsonValue root = ParseJson(R"({
    "heads": 0, "hidden": 1.5,
    "rate": 1, "tie": "yes",
    "act": "gleu", "window": 3, "flag": true,
    "hiden": 7 })",
                             "f")
                       .value();
  FileDiagnostics problems("a\nb");
  JsonObjectReader reader(root, "m.", &problems);
  reader.Bool("tie", false);
  reader.Integer("heads", {1, 9});
  reader.Integer("hidden", {1, 9});
  reader.Integer("layers", {1, 9});
  EXPECT_EQ(reader.Number("rate", {0, 1, true, false}), 0.0);
  reader.Choice("act", {"gelu", "silu", "relu"});
  reader.RequireNull("window", "no windows");
  reader.RequireBool("flag", false);
  EXPECT_TRUE(reader.Failed("heads"));
  EXPECT_TRUE(reader.Failed("layers"));
  EXPECT_FALSE(reader.Failed("absent"));
  reader.Finish();
  EXPECT_EQ(
      problems.ToStatus().message(),
      "a\\x0Ab:1:1: m.layers is missing [J4]\n"
      "a\\x0Ab:2:14: m.heads must be from 1 to 9, not 0 [J3]\n"
      "a\\x0Ab:2:27: m.hidden must be an integer, not a number [J2]\n"
      "a\\x0Ab:3:13: m.rate must be at least 0 and below 1, not 1 [J3]\n"
      "a\\x0Ab:3:23: m.tie must be true or false, not a string [J2]\n"
      "a\\x0Ab:4:12: m.act must be gelu, silu or relu, not \"gleu\" (did you mean gelu?) [J5]\n"
      "a\\x0Ab:4:30: m.window must be null: no windows [J5]\n"
      "a\\x0Ab:4:41: m.flag must be false: nothing else is supported [J5]\n"
      "a\\x0Ab:5:5: unknown key m.hiden (did you mean hidden?) [J1]");
}

TEST(JsonObjectReader, AnotherKindThanAnObjectIsOneProblem) {
  JsonValue root = ParseJson("[]", "f").value();
  FileDiagnostics problems("f");
  JsonObjectReader reader(root, "rope_scaling.", &problems);
  EXPECT_EQ(reader.Integer("factor", {1, 2}), 1);
  reader.Finish();
  EXPECT_EQ(problems.ToStatus().message(),
            "f:1:1: rope_scaling must be an object, not an array [J2]");
}

}  // namespace
}  // namespace mgc
