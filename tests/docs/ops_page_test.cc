// docs/ops.md is the op table, printed.
//   ops_page_test                       compares
//   ops_page_test --write=docs/ops.md   rewrites it

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/op.h"
#include "gtest/gtest.h"

namespace mgc {
namespace {

constexpr char kIntroduction[] =
    "# Ops\n\n"
    "Printed from the op table (`graph/ops`) by `tests/docs/ops_page_test`; see\n"
    "[how to add one](extending.md). A rule names the loop indices (factors) behind dims: `!` "
    "must\n"
    "be whole, `^` is contracted by a maximum, `...` is any run of dims, `(k g)` a dim of two\n"
    "factors. A factor that is missing in the result is contracted: cut, it leaves an owed sum.\n";

// `|` ends a cell.
std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string RuleCell(const OpDef& op) {
  if (op.rule_of) return "depends on the use";
  if (op.collective) return "";
  return absl::StrCat("`", Cell(op.rule), "`");
}

std::string AttrsCell(const OpDef& op) {
  return absl::StrJoin(op.attrs, ", ", [](std::string* out, const AttrSpec& spec) {
    absl::StrAppend(out, "`", spec.name, "`", spec.required ? "" : " (optional)");
  });
}

std::string GradientCell(const OpDef& op) {
  if (op.grad) return "yes";
  return op.no_grad.empty() ? "no" : absl::StrCat("no: ", Cell(op.no_grad));
}

std::string RowOf(const OpDef& op) {
  return absl::StrCat("| `", op.name, "(", absl::StrJoin(op.operands, ", "), ")` | ", Cell(op.doc),
                      " | ", RuleCell(op), " | ", AttrsCell(op), " | ", GradientCell(op), " |\n");
}

std::string OpsWithScratch() {
  std::vector<std::string> names;
  for (const OpDef& op : AllOps()) {
    if (op.workspace) names.push_back(absl::StrCat("`", op.name, "`"));
  }
  return absl::StrJoin(names, ", ");
}

std::string OpsPage() {
  std::string page = kIntroduction;
  const auto table = [&page](absl::string_view title, bool collective, bool fused) {
    absl::StrAppend(&page, "\n## ", title, "\n\n| op | meaning | rule | attributes | gradient |\n",
                    "|---|---|---|---|---|\n");
    for (const OpDef& op : AllOps()) {
      const bool is_fused = !op.expands_to.empty();
      if (op.collective == collective && is_fused == fused) page += RowOf(op);
    }
  };
  table("Ops of models and their gradients", false, false);
  table("Fused ops", false, true);
  table("Collectives, of local graphs only", true, false);
  absl::StrAppend(&page, "\n## Scratch\n\nKernels of these ops may use scratch: ", OpsWithScratch(),
                  ".\n[plan.md](plan.md#memory) says how much.\n");
  return page;
}

TEST(OpsPageTest, IsTheOpTable) {
  const absl::StatusOr<std::string> page = ReadFile("docs/ops.md");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, OpsPage()) << "rewrite it: ops_page_test --write=docs/ops.md";
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::string_view path = argc > 1 ? argv[1] : "";
  if (!absl::ConsumePrefix(&path, "--write=")) return RUN_ALL_TESTS();
  const absl::Status status = mgc::WriteFileAtomically(std::string(path), mgc::OpsPage());
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
