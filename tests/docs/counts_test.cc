// Numbers of damaged plans that the pages state are those of the tests.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

using testing::HasSubstr;

// In one line.
std::string TextOf(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return absl::StrReplaceAll(text.value_or(""), {{"\n", " "}});
}

// `2,000`; of numbers from 1,000 to 999,999.
std::string Grouped(int number) {
  const std::string digits = absl::StrCat(number);
  return absl::StrCat(digits.substr(0, digits.size() - 3), ",", digits.substr(digits.size() - 3));
}

TEST(CountsTest, PagesSayHowPlansAreDamaged) {
  const std::vector<MutationKind> kinds = AllMutations();
  const auto of_holes = std::count_if(kinds.begin(), kinds.end(),
                                      [](const MutationKind& kind) { return kind.hole > 0; });
  const std::string mutants = absl::StrCat("more than ", Grouped(kLeastMutants));
  const std::string page = TextOf("docs/verify.md");
  EXPECT_THAT(page, HasSubstr(absl::StrCat("damages plans in ", kinds.size(), " ways")));
  EXPECT_THAT(page, HasSubstr(absl::StrCat(mutants, " mutants")));
  EXPECT_THAT(page, HasSubstr(absl::StrCat(of_holes, " kinds aim at")));
  EXPECT_THAT(TextOf("README.md"),
              HasSubstr(absl::StrCat(mutants, " damaged plans of ", kinds.size(), " kinds")));
}

}  // namespace
}  // namespace mgc
