// Labels of rules: every one that the code gives is on a page and in a test, every one on a page is
// in the code.
//
// Two forms. `P18`: configurations, command lines, configuration files. `graph_c3`, `order_v4`:
// graphs, texts, bytes, plans and their proof; those of an op (`matmul_c2`) are made of its name
// and a number by Refuse().

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "tests/docs/page.h"

namespace mgc {
namespace {

namespace fs = std::filesystem;
using Labels = std::set<std::string>;

// Whether a file is part of a test, by its path.
bool IsOfTest(const std::string& path) {
  return absl::StartsWith(path, "tests/") || absl::EndsWith(path, "_test.cc") ||
         absl::EndsWith(path, "_test.sh") || absl::StrContains(path, "/testing/");
}

// The files below the folders with one of the endings: those of tests, or all others.
std::vector<std::string> TextsBelow(const std::vector<std::string>& folders,
                                    const std::vector<std::string>& endings, bool of_tests) {
  std::vector<std::string> texts;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      const bool wanted = std::any_of(endings.begin(), endings.end(), [&](const std::string& end) {
        return absl::EndsWith(path, end);
      });
      if (!wanted || IsOfTest(path) != of_tests) continue;
      if (absl::EndsWith(path, "safetensors.cc")) continue;  // its `F32` is no label
      const absl::StatusOr<std::string> text = ReadFile(path);
      EXPECT_TRUE(text.ok()) << text.status();
      texts.push_back(text.value_or(""));
    }
  }
  EXPECT_GT(texts.size(), 5u);
  return texts;
}

std::vector<std::string> Sources() {
  return TextsBelow({"graph", "passes", "frontends", "kernels", "runtime", "tools"}, {".cc", ".h"},
                    false);
}

std::vector<std::string> TestSources() {
  return TextsBelow({"graph", "passes", "frontends", "runtime", "tests", "tools"},
                    {".cc", ".h", ".sh", ".mgc"}, true);
}

// Adds what `form` matches: its groups, one after the other, `infix` between them.
void AddMatches(const std::string& text, const std::string& form, const std::string& infix,
                Labels* labels) {
  const std::regex regex(form);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    std::string label = (*at)[1].str();
    for (size_t group = 2; group < at->size(); ++group) label += infix + (*at)[group].str();
    labels->insert(label);
  }
}

// Labels of the second form on pages; `x_c1` … `x_c4` are four.
Labels PageLabels() {
  Labels labels;
  const std::regex label("[a-z_]+_[cv][0-9]+");
  const std::regex range("`([a-z_]+_[cv])([0-9]+)` … `[a-z_]+_[cv]([0-9]+)`");
  for (const std::string& text : TextsBelow({"docs"}, {".md"}, false)) {
    for (const std::string& word : CodeWordsOf(text)) {
      if (std::regex_match(word, label)) labels.insert(word);
    }
    for (std::sregex_iterator at(text.begin(), text.end(), range), end; at != end; ++at) {
      int low = 0;
      int high = 0;
      EXPECT_TRUE(absl::SimpleAtoi((*at)[2].str(), &low));
      EXPECT_TRUE(absl::SimpleAtoi((*at)[3].str(), &high));
      for (int i = low; i <= high; ++i) labels.insert(absl::StrCat((*at)[1].str(), i));
    }
  }
  return labels;
}

// In `some` and not in `others`, for messages.
std::vector<std::string> Missing(const Labels& some, const Labels& others) {
  std::vector<std::string> missing;
  std::set_difference(some.begin(), some.end(), others.begin(), others.end(),
                      std::back_inserter(missing));
  return missing;
}

// Labels of the first form: strings of their own, or at the ends of messages.
Labels RulesIn(const std::vector<std::string>& texts) {
  Labels rules;
  for (const std::string& text : texts) {
    AddMatches(text, R"re("([A-Z][0-9]{1,2})")re", "", &rules);
    AddMatches(text, R"re(\[([A-Z][0-9]{1,2})\])re", "", &rules);
  }
  return rules;
}

// Labels of the second form.
Labels ConstraintsIn(const std::vector<std::string>& texts) {
  Labels constraints;
  for (const std::string& text : texts) {
    AddMatches(text, R"re(\b([a-z_]+_[cv][0-9]+)\b)re", "", &constraints);
    AddMatches(text, R"re(Refuse\(\s*"([a-z_]+)",\s*([0-9]+))re", "_c", &constraints);
  }
  return constraints;
}

TEST(LabelsTest, RulesAreOnTheErrorsPage) {
  const Labels code = RulesIn(Sources());
  Labels page;
  const std::regex rule("[A-Z][0-9]{1,2}");
  const absl::StatusOr<std::string> text = ReadFile("docs/errors.md");
  ASSERT_TRUE(text.ok()) << text.status();
  for (const std::string& word : CodeWordsOf(*text)) {
    if (std::regex_match(word, rule)) page.insert(word);
  }
  EXPECT_GT(code.size(), 40u);
  EXPECT_EQ(Missing(code, page), std::vector<std::string>()) << "are not on docs/errors.md";
  EXPECT_EQ(Missing(page, code), std::vector<std::string>()) << "are not in the code";
}

TEST(LabelsTest, AreInTests) {
  const std::vector<std::string> code = Sources();
  const std::vector<std::string> tests = TestSources();
  EXPECT_EQ(Missing(RulesIn(code), RulesIn(tests)), std::vector<std::string>()) << "are in no test";
  EXPECT_EQ(Missing(ConstraintsIn(code), ConstraintsIn(tests)), std::vector<std::string>())
      << "are in no test";
}

TEST(LabelsTest, ConstraintsAreOnPages) {
  const Labels code = ConstraintsIn(Sources());
  const Labels pages = PageLabels();
  EXPECT_GT(code.size(), 60u);
  EXPECT_EQ(Missing(code, pages), std::vector<std::string>()) << "are on no page";
  for (const std::string& label : Missing(pages, code)) {
    // Labels of an op's shared checks are not written out in the code.
    EXPECT_NE(FindOp(label.substr(0, label.rfind("_c"))), nullptr) << label << " is not in code";
  }
}

}  // namespace
}  // namespace mgc
