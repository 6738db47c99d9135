// docs/ops.md is the op table, printed.
//   ops_page_test                       compares
//   ops_page_test --write=docs/ops.md   rewrites it

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/types/attrs.h"
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

// Writes a fused op as a term of small ops: `mul(silu(gate), up)`.
class TermWriter : public EmitContext {
 public:
  explicit TermWriter(const OpDef& op) : terms_(op.operands) {}

  const Attrs& attrs() const override { return attrs_; }
  int num_inputs() const override { return static_cast<int>(terms_.size()); }
  ValueId input(int i) const override { return i; }
  std::vector<ValueId> EmitAll(absl::string_view op, std::vector<ValueId> inputs,
                               Attrs /*attrs*/) override {
    terms_.push_back(absl::StrCat(op, "(", TermsOf(inputs), ")"));
    return {static_cast<ValueId>(terms_.size()) - 1};
  }

  std::string TermsOf(const std::vector<ValueId>& values) const {
    return absl::StrJoin(values, ", ", [this](std::string* out, ValueId value) {
      out->append(terms_[static_cast<size_t>(value)]);
    });
  }

 private:
  const Attrs attrs_;
  std::vector<std::string> terms_;
};

std::string ExpansionRow(const OpDef& op) {
  TermWriter writer(op);
  const std::vector<ValueId> results = op.expand(writer);
  return absl::StrCat("| `", op.name, "` | `", writer.TermsOf(results), "` | ",
                      op.replaces_expansion ? "yes" : "no", " |\n");
}

std::string Expansions() {
  std::string text =
      "\n## What fused ops stand for\n\n"
      "| op | small ops | put in their place by fuse |\n|---|---|---|\n";
  for (const OpDef& op : AllOps()) {
    if (op.expand) text += ExpansionRow(op);
  }
  return text;
}

struct RoleRow {
  OpRole role;
  const char* meaning;
};
constexpr RoleRow kRoles[] = {
    {OpRole::kSum, "the sum of all operands: taken apart, regrouped, paid once where it is owed"},
    {OpRole::kCollect, "a micro-batch's contribution joins a sum that lives on, which stays owed"},
    {OpRole::kPack, "operands are written where the result lies: nothing is computed"},
    {OpRole::kReshard, "a change of sharding, which partition spells out"},
    {OpRole::kRandom, "draws random numbers; evaluation turns them off"},
    {OpRole::kRecompute, "selective recomputation computes it again for backward"},
    {OpRole::kRange, "takes a part of a dim, by attributes: a parameter may become its parts"},
    {OpRole::kCast, "changes the element type and nothing else: where a plan rounds"},
};

std::string Roles() {
  std::string text =
      "\n## Roles\n\nWhat passes treat in a way of its own (`OpRole` in `graph/ir/op.h`):\n\n"
      "| ops | role |\n|---|---|\n";
  for (const RoleRow& role : kRoles) {
    std::vector<std::string> names;
    for (const OpDef& op : AllOps()) {
      if (op.Has(role.role)) names.push_back(absl::StrCat("`", op.name, "`"));
    }
    absl::StrAppend(&text, "| ", absl::StrJoin(names, ", "), " | ", role.meaning, " |\n");
  }
  return text;
}

// The names of ops for which `holds` does.
template <class Predicate>
std::string OpsOf(const Predicate& holds) {
  std::vector<std::string> names;
  for (const OpDef& op : AllOps()) {
    if (holds(op)) names.push_back(absl::StrCat("`", op.name, "`"));
  }
  return absl::StrJoin(names, ", ");
}

std::string OpsWithScratch() {
  return OpsOf([](const OpDef& op) { return static_cast<bool>(op.workspace); });
}

std::string OpsOfPrecision(Precision precision) {
  return OpsOf([&](const OpDef& op) { return !op.collective && op.precision == precision; });
}

// `mean`, `rstd`
std::string Picked(const std::vector<std::string>& names, const std::vector<int>& which) {
  return absl::StrJoin(which, ", ", [&](std::string* out, int i) {
    absl::StrAppend(out, "`", names[static_cast<size_t>(i)], "`");
  });
}

std::string ElementTypes() {
  std::string text =
      "\n## Element types\n\n"
      "Real operands and results of an op share one element type, `f32`, `f64`, `bf16` or `f16`; "
      "scalars of `f64` may\nstand beside them. Where that type is `bf16` or `f16` these are `f32` "
      "all the same:\n\n"
      "| op | operands | results |\n|---|---|---|\n";
  for (const OpDef& op : AllOps()) {
    if (op.wide_operands.empty() && op.wide_results.empty()) continue;
    absl::StrAppend(&text, "| `", op.name, "` | ", Picked(op.operands, op.wide_operands), " | ",
                    Picked(op.results, op.wide_results), " |\n");
  }
  absl::StrAppend(&text, "\nA step in `bf16` or `f16` (the pass `narrow`) computes ",
                  OpsOfPrecision(Precision::kNarrow), " in it, and rounds what ",
                  OpsOfPrecision(Precision::kNarrowResult),
                  " makes. Never in it: ", OpsOfPrecision(Precision::kWide),
                  ".\nAll other ops follow their operands.\n");
  return text;
}

std::string OpsPage() {
  std::string page = kIntroduction;
  const auto table = [&page](absl::string_view title, bool collective, bool fused) {
    absl::StrAppend(&page, "\n## ", title, "\n\n| op | meaning | rule | attributes | gradient |\n",
                    "|---|---|---|---|---|\n");
    for (const OpDef& op : AllOps()) {
      const bool is_fused = static_cast<bool>(op.expand);
      if (op.collective == collective && is_fused == fused) page += RowOf(op);
    }
  };
  table("Ops of models and their gradients", false, false);
  table("Fused ops", false, true);
  page += Expansions();
  table("Collectives, of local graphs only", true, false);
  page += Roles();
  page += ElementTypes();
  absl::StrAppend(&page, "\n## Scratch\n\nKernels of these ops may use scratch: ", OpsWithScratch(),
                  ".\n[plan.md](plan.md#memory) says how much.\n");
  return page;
}

// Lines of `text` that `other` has not.
std::vector<std::string> LinesMissing(const std::string& text, const std::string& other) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const std::vector<std::string> others = absl::StrSplit(other, '\n');
  const std::set<std::string> known(others.begin(), others.end());
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [&](const std::string& line) { return known.count(line) > 0; }),
              lines.end());
  return lines;
}

TEST(OpsPageTest, IsTheOpTable) {
  const absl::StatusOr<std::string> page = ReadFile("docs/ops.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string expected = OpsPage();
  EXPECT_TRUE(*page == expected)
      << "docs/ops.md lacks\n  " << absl::StrJoin(LinesMissing(expected, *page), "\n  ")
      << "\nand says, no longer true,\n  " << absl::StrJoin(LinesMissing(*page, expected), "\n  ")
      << "\nrewrite it: bazel-bin/tests/docs/ops_page_test --write=docs/ops.md";
}

TEST(OpsPageTest, ListsEveryRoleThatAnOpHas) {
  std::set<OpRole> listed;
  for (const RoleRow& row : kRoles) listed.insert(row.role);
  for (const OpDef& op : AllOps()) {
    for (OpRole role : op.roles) {
      EXPECT_TRUE(listed.count(role) > 0) << op.name << " has a role that kRoles does not explain";
    }
  }
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
