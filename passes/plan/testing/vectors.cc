#include "passes/plan/testing/vectors.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "gtest/gtest.h"

namespace mgc {

std::string ReadVectors(const std::string& name) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat("tests/data/", name));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

std::vector<std::vector<std::string>> ReadVectorRows(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  const std::string text = ReadVectors(name);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    rows.push_back(absl::StrSplit(line, ' '));
  }
  EXPECT_FALSE(rows.empty()) << name;
  return rows;
}

int64_t ToInt(absl::string_view field) {
  int64_t value = 0;
  EXPECT_TRUE(absl::SimpleAtoi(field, &value)) << field;
  return value;
}

std::vector<int64_t> ToInts(absl::string_view field) {
  std::vector<int64_t> values;
  for (absl::string_view part : absl::StrSplit(field, ',')) values.push_back(ToInt(part));
  return values;
}

}  // namespace mgc
