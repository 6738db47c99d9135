#include "tools/cli/flags.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

// A command with one flag of each kind.
struct Command {
  absl::optional<int64_t> ranks;
  absl::optional<double> rate;
  absl::optional<std::string> kind, file;
  bool quiet = false;
  std::vector<std::string> arguments;
  Flags flags{{"tool", "FILE", "does it", {"tool x", "tool --ranks 2 y"}, "Notes."}};

  Command() {
    flags.Integer("--ranks,--number-of-ranks", "how many", {1, 100}, "G0", &ranks);
    flags.Real("--rate", "how fast", 0, 1, &rate);
    flags.Choice("--kind", {"fast", "slow"}, "which", &kind);
    flags.Text("-o,--output", "FILE", "where", &file);
    flags.Switch("--quiet", "say nothing", &quiet);
    flags.Arguments(1, 2, &arguments);
  }
};

std::string Errors(const ParsedFlags& parsed) {
  return absl::StrJoin(parsed.errors, "\n", [](std::string* out, const Diagnostic& violation) {
    out->append(ToString(violation));
  });
}

TEST(FlagsTest, ReadsEveryForm) {
  Command command;
  const ParsedFlags parsed = command.flags.Parse(
      {"in", "--ranks=7", "--rate", "1e-3", "--quiet", "-o", "-", "--kind=slow", "-"});
  EXPECT_EQ(Errors(parsed), "");
  EXPECT_EQ(command.ranks, 7);
  EXPECT_EQ(command.rate, 1e-3);
  EXPECT_EQ(command.kind, "slow");
  EXPECT_EQ(command.file, "-");
  EXPECT_TRUE(command.quiet);
  EXPECT_EQ(command.arguments, (std::vector<std::string>{"in", "-"}));
}

TEST(FlagsTest, WeightsTakeAFileEach) {
  std::vector<std::string> files;
  std::vector<std::string> arguments;
  Flags flags({"tool", "FILE", "does it", {}, ""});
  flags.WeightedFiles("--data", "which", &files);
  flags.Arguments(1, 1, &arguments);
  const auto read = [&](const std::vector<std::string>& words) {
    files.clear();
    arguments.clear();
    return Errors(flags.Parse(words));
  };
  EXPECT_EQ(read({"--data", "0.3", "a", ".7", "b", "in"}), "");
  EXPECT_EQ(files, (std::vector<std::string>{"0.3", "a", ".7", "b"}));
  EXPECT_EQ(arguments, std::vector<std::string>{"in"});
  EXPECT_EQ(read({"in", "--data", "a", "--data=b"}), "");
  EXPECT_EQ(files, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read({"in", "--data", "3"}), "") << "a file of that name, or so it seems";
  EXPECT_EQ(files, std::vector<std::string>{"3"});
  EXPECT_EQ(read({"--data", "1", "a", "2"}), "missing argument: FILE [F6]");
}

TEST(FlagsTest, TakesLongNames) {
  Command command;
  EXPECT_EQ(Errors(command.flags.Parse({"--number-of-ranks", "3", "in"})), "");
  EXPECT_EQ(command.ranks, 3);
}

TEST(FlagsTest, FindsEverythingAtOnce) {
  Command command;
  const ParsedFlags parsed =
      command.flags.Parse({"--ranks", "0", "--rate=2", "--kind", "slo", "a", "b", "c"});
  EXPECT_EQ(Errors(parsed),
            "--ranks is 0, must be between 1 and 100 [G0]; nearest legal: 1\n"
            "--rate is 2, must be between 0 and 1 [F3]; nearest legal: 1\n"
            "--kind is slo (did you mean slow?) [F4]; nearest legal: fast, slow\n"
            "unexpected argument c [F6]");
  EXPECT_EQ(parsed.bad_flags, (std::vector<std::string>{"--ranks", "--rate", "--kind"}));
  EXPECT_FALSE(command.ranks.has_value());
}

TEST(FlagsTest, SuggestsFlags) {
  Command command;
  EXPECT_EQ(Errors(command.flags.Parse({"in", "--rank", "2"})),
            "unknown flag --rank (did you mean --ranks?) [F1]");
}

TEST(FlagsTest, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "1x", "+1", " 1", "0x1", "1e2", "1.0", "-", "--", "nan", "\xff"}) {
    Command command;
    const ParsedFlags parsed = command.flags.Parse({"in", "--ranks", text});
    ASSERT_EQ(parsed.errors.size(), 1) << text;
    EXPECT_EQ(parsed.errors[0].label, "F2") << text;
  }
  for (const char* text : {"", "nan", "inf", "1e999", "0x1p3", "1 ", "--quiet"}) {
    Command command;
    const ParsedFlags parsed = command.flags.Parse({"in", "--rate", text});
    ASSERT_EQ(parsed.errors.size(), 1) << text;
    EXPECT_EQ(parsed.errors[0].label, "F2") << text;
  }
}

TEST(FlagsTest, ProposesTheNumberThatWasMeant) {
  const std::vector<std::vector<std::string>> hints = {
      {"--rate", "0,5", "0.5"}, {"--rate", "1,5", "1"},   {"--rate", "nan", ""},
      {"--rate", "", ""},       {"--rate", "1e999", "1"}, {"--ranks", "1e1", "10"},
      {"--ranks", "2.6", "3"},  {"--ranks", "-1.5", "1"}, {"--ranks", "two", ""}};
  for (const std::vector<std::string>& hint : hints) {
    Command command;
    const ParsedFlags parsed = command.flags.Parse({"in", hint[0], hint[1]});
    ASSERT_EQ(parsed.errors.size(), 1) << hint[1];
    EXPECT_EQ(parsed.errors[0].hint, hint[2]) << hint[1];
  }
}

TEST(FlagsTest, RefusesNumbersOutOfRange) {
  for (const char* text : {"-1", "0", "101", "99999999999999999999", "-99999999999999999999"}) {
    Command command;
    const ParsedFlags parsed = command.flags.Parse({"in", "--ranks", text});
    ASSERT_EQ(parsed.errors.size(), 1) << text;
    EXPECT_EQ(parsed.errors[0].label, "G0") << text;
    EXPECT_EQ(parsed.errors[0].hint, text[0] == '-' || text[0] == '0' ? "1" : "100") << text;
  }
}

TEST(FlagsTest, RefusesWrongCounts) {
  const std::vector<std::vector<std::string>> lines = {
      {"in", "--ranks"}, {"in", "--quiet=no"}, {"in", "--ranks", "1", "--ranks=2"}};
  for (const std::vector<std::string>& line : lines) {
    Command command;
    const ParsedFlags parsed = command.flags.Parse(line);
    ASSERT_EQ(parsed.errors.size(), 1) << absl::StrJoin(line, " ");
    EXPECT_EQ(parsed.errors[0].label, "F5") << absl::StrJoin(line, " ");
  }
  EXPECT_EQ(Errors(Command().flags.Parse({"in", "--quiet=no"})),
            "--quiet takes no value, not no [F5]; nearest legal: --quiet");
  EXPECT_EQ(Errors(Command().flags.Parse({"in", "--number-of-ranks"})),
            "--number-of-ranks is given without its value [F5]; nearest legal: "
            "--number-of-ranks N");
  Command command;
  EXPECT_EQ(Errors(command.flags.Parse({"--quiet"})), "missing argument: FILE [F6]");
}

TEST(FlagsTest, ReadsTheRestOfALineWithAMisusedFlag) {
  Command command;
  const ParsedFlags parsed =
      command.flags.Parse({"in", "--quiet=1", "-o", "--quiet=2", "--ranks=0", "--", "--quiet=3"});
  EXPECT_EQ(Errors(parsed),
            "--quiet takes no value, not 1 [F5]; nearest legal: --quiet\n"
            "--ranks is 0, must be between 1 and 100 [G0]; nearest legal: 1");
  EXPECT_EQ(parsed.bad_flags, (std::vector<std::string>{"--quiet", "--ranks"}));
  EXPECT_EQ(command.file, "--quiet=2");
  EXPECT_EQ(command.arguments, (std::vector<std::string>{"in", "--quiet=3"}));
}

TEST(FlagsTest, TakesSomeFlagsSeveralTimes) {
  Flags flags({"tool", "", "", {}, ""});
  std::vector<std::string> kinds;
  flags.Choices("--kind", {"fast", "slow"}, "which", &kinds);
  EXPECT_EQ(Errors(flags.Parse({"--kind", "slow", "--kind=fast", "--kind", "slow"})), "");
  EXPECT_EQ(kinds, (std::vector<std::string>{"slow", "fast", "slow"}));
  EXPECT_EQ(flags.Parse({"--kind", "slow", "--kind", "flow"}).errors.size(), 1);
}

TEST(FlagsTest, TakesArgumentsBehindTwoDashes) {
  Command command;
  EXPECT_EQ(Errors(command.flags.Parse({"--", "--ranks"})), "");
  EXPECT_EQ(command.arguments, std::vector<std::string>{"--ranks"});
}

TEST(FlagsTest, HelpWinsOverErrors) {
  Command command;
  const ParsedFlags parsed = command.flags.Parse({"--ranks", "x", "--help", "--unknown"});
  ASSERT_TRUE(parsed.text.has_value());
  EXPECT_EQ(parsed.text->find("tool: does it\n\nExamples:\n  tool x\n"), 0) << *parsed.text;
  EXPECT_NE(parsed.text->find("  --ranks, --number-of-ranks N\n      how many\n"),
            std::string::npos)
      << *parsed.text;
  EXPECT_EQ(*Command().flags.Parse({"--version"}).text, VersionText());
  EXPECT_EQ(*Command().flags.Parse({"-h"}).text, command.flags.Help());
}

}  // namespace
}  // namespace mgc
