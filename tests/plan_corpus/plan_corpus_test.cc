// No plan and no loss has moved since the pins were written.

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/plan_corpus/pinned_plans.h"

namespace mgc {
namespace {

const PinFiles& Made() {
  static const PinFiles* const files = new PinFiles(MakePinFiles());
  return *files;
}

std::vector<std::string> LinesOf(const std::string& text) { return absl::StrSplit(text, '\n'); }

std::vector<std::string> PinnedLines(const std::string& name) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat("tests/plan_corpus/", name));
  EXPECT_TRUE(text.ok()) << text.status();
  return LinesOf(text.value_or(""));
}

// Line by line, with the plan whose line differs.
void ExpectPinned(const std::string& name, const std::string& made) {
  const std::vector<std::string> pinned = PinnedLines(name);
  const std::vector<std::string> now = LinesOf(made);
  std::string plan;
  int shown = 0;
  for (size_t i = 0; i < std::min(pinned.size(), now.size()) && shown < 20; ++i) {
    if (now[i].rfind("plan ", 0) == 0) plan = now[i];
    if (pinned[i] == now[i]) continue;
    ADD_FAILURE() << plan << "\npinned: " << pinned[i] << "\nnow:    " << now[i];
    ++shown;
  }
  EXPECT_EQ(pinned.size(), now.size());
}

TEST(PlanCorpusTest, SummariesHaveNotMoved) { ExpectPinned("summaries.txt", Made().summaries); }

TEST(PlanCorpusTest, TextsHaveNotMoved) { ExpectPinned("text_hashes.txt", Made().text_hashes); }

TEST(PlanCorpusTest, HasSixtyPlans) { EXPECT_GE(PinnedCases().size(), 60u); }

// Losses to the bit on the instruction set of the pins, within rounding on others.
TEST(PlanCorpusTest, LossesHaveNotMoved) {
  const std::vector<std::string> pinned = PinnedLines("losses.txt");
  const std::vector<std::string> now = LinesOf(Made().losses);
  if (pinned[0] == now[0]) return ExpectPinned("losses.txt", Made().losses);
  ASSERT_EQ(pinned.size(), now.size());
  for (size_t i = 1; i < now.size(); ++i) {
    const std::vector<std::string> a = absl::StrSplit(pinned[i], ' ');
    const std::vector<std::string> b = absl::StrSplit(now[i], ' ');
    ASSERT_EQ(a.size(), b.size()) << now[i];
    for (size_t j = 2; j < a.size(); ++j) {
      EXPECT_NEAR(std::strtod(b[j].c_str(), nullptr) / std::strtod(a[j].c_str(), nullptr), 1, 1e-6)
          << now[i];
    }
  }
}

}  // namespace
}  // namespace mgc
