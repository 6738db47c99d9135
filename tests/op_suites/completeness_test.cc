// Every op fills every field of its registration, or says why not.

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/op_suites/suite.h"

namespace mgc {
namespace {

TEST(OpTable, NamesAreUniqueAndSorted) {
  const std::vector<OpDef>& ops = AllOps();
  ASSERT_FALSE(ops.empty());
  for (size_t i = 1; i < ops.size(); ++i) EXPECT_LT(ops[i - 1].name, ops[i].name);
  for (const OpDef& op : ops) EXPECT_EQ(FindOp(op.name), &op);
  EXPECT_EQ(FindOp("no_such_op"), nullptr);
  EXPECT_EQ(FindOp(""), nullptr);
}

class CompletenessTest : public testing::TestWithParam<std::string> {
 protected:
  const OpDef& op() const { return *FindOp(GetParam()); }
};

TEST_P(CompletenessTest, SaysWhatItIs) {
  for (char c : op().name) {
    EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) || std::isdigit(c) || c == '_');
  }
  EXPECT_GT(op().doc.size(), 5u);
  EXPECT_TRUE(absl::EndsWith(op().doc, "."));
  EXPECT_FALSE(op().results.empty());
  EXPECT_NE(op().eval.real, nullptr);
  EXPECT_NE(op().eval.residue, nullptr);
  EXPECT_NE(op().eval.dual, nullptr);
  EXPECT_TRUE(std::isfinite(op().flops_per_point) && op().flops_per_point >= 0);
}

TEST_P(CompletenessTest, HasOneRule) {
  const bool by_text = !op().rule.empty();
  const bool by_use = static_cast<bool>(op().rule_of);
  EXPECT_NE(by_text, by_use);
}

TEST_P(CompletenessTest, HasAGradientOrAReason) {
  EXPECT_NE(static_cast<bool>(op().grad), !op().no_grad.empty());
}

TEST_P(CompletenessTest, ListsFit) {
  const bool repeats = !op().operands.empty() && absl::EndsWith(op().operands.back(), "...");
  const int operands = static_cast<int>(op().operands.size());
  for (const std::vector<int>* list :
       {&op().linear_operands, &op().index_operands, &op().stopped_operands, &op().type_operands}) {
    for (int i : *list) EXPECT_TRUE(i >= 0 && (i < operands || repeats)) << i;
  }
  EXPECT_TRUE(op().linear_operands.empty() || op().linearity != Linearity::kNone);
  EXPECT_LT(op().saved_results, static_cast<int>(op().results.size()));
  std::set<std::string> attrs;
  for (const AttrSpec& spec : op().attrs) EXPECT_TRUE(attrs.insert(spec.name).second) << spec.name;
}

// What passes rely on when they ask for a role.
TEST_P(CompletenessTest, RolesFit) {
  const std::set<OpRole> roles(op().roles.begin(), op().roles.end());
  EXPECT_EQ(roles.size(), op().roles.size()) << "a role is listed twice";
  for (OpRole role : roles) EXPECT_TRUE(op().Has(role));
  const auto has_attr = [&](absl::string_view name, AttrKind kind) {
    return std::any_of(op().attrs.begin(), op().attrs.end(), [&](const AttrSpec& spec) {
      return spec.name == name && spec.kind == kind;
    });
  };
  if (op().Has(OpRole::kRandom)) {
    EXPECT_TRUE(has_attr(kDropAttr, AttrKind::kReal));
    EXPECT_TRUE(has_attr(kRandomKeyAttr, AttrKind::kText));
  } else {
    EXPECT_FALSE(has_attr(kRandomKeyAttr, AttrKind::kText)) << "is it random?";
  }
  if (op().Has(OpRole::kRange)) {
    EXPECT_EQ(op().operands.size(), 1u);
    for (const char* name : {kDimAttr, kBeginAttr, kEndAttr}) {
      EXPECT_TRUE(has_attr(name, AttrKind::kInt)) << name;
    }
  }
  if (op().Has(OpRole::kSum) || op().Has(OpRole::kPack)) {
    EXPECT_EQ(op().linearity, Linearity::kJoint);
    EXPECT_TRUE(op().linear_operands.empty());
  }
  if (op().Has(OpRole::kCollect)) {
    EXPECT_EQ(op().operands.size(), 2u);
    EXPECT_EQ(OperandInPlace(op(), 0), 0) << "a sum that lives on is added to in place";
  }
  EXPECT_TRUE(op().identity || !op().Has(OpRole::kReshard));
  if (op().identity) {
    EXPECT_FALSE(op().operands.empty());
    EXPECT_EQ(op().results.size(), 1u);
  }
  EXPECT_TRUE(op().expand || !op().replaces_expansion);
}

TEST_P(CompletenessTest, PlacesFit) {
  std::map<int, int> first;  // operand, by result
  std::set<std::pair<int, int>> pairs;
  for (const InPlace& pair : op().in_place) {
    EXPECT_LT(pair.result, static_cast<int>(op().results.size()));
    EXPECT_LT(pair.operand, static_cast<int>(op().operands.size()));
    EXPECT_TRUE(pairs.emplace(pair.result, pair.operand).second) << "result " << pair.result;
    EXPECT_EQ(OperandInPlace(op(), pair.result),
              first.emplace(pair.result, pair.operand).first->second);
  }
  EXPECT_EQ(OperandInPlace(op(), static_cast<int>(op().results.size())), -1);
}

TEST_P(CompletenessTest, CostsOfAUseAreFinite) {
  EXPECT_TRUE(!op().flops || op().flops_per_point == OpDef().flops_per_point) << "two answers";
  for (size_t i = 0; i < op().cases.size(); ++i) {
    const absl::StatusOr<BoundCase> bound = BindCase(op(), i);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const std::vector<const TensorType*> operands = bound->OperandTypes();
    std::vector<const TensorType*> results;
    for (const TensorType& type : bound->results) results.push_back(&type);
    const OpUse use{bound->op_case->attrs, operands, results};
    for (const auto* cost : {&op().flops, &op().bytes}) {
      if (!*cost) continue;
      EXPECT_TRUE(std::isfinite((*cost)(use)) && (*cost)(use) > 0) << bound->name;
    }
  }
}

TEST_P(CompletenessTest, CasesAreLegalAndSmall) {
  ASSERT_FALSE(op().cases.empty());
  for (size_t i = 0; i < op().cases.size(); ++i) {
    const absl::StatusOr<BoundCase> bound = BindCase(op(), i);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_EQ(bound->results.size(), op().results.size());
    EXPECT_LT(op().cases[i].low, op().cases[i].high);
    EXPECT_GT(op().cases[i].tolerance, 0);
    int64_t points = 1;
    for (const Factor& factor : bound->rule.factors) {
      EXPECT_GT(factor.size, 0) << factor.name;
      points *= factor.size;
    }
    EXPECT_LE(points, 10000);
    for (const std::string& name : op().offset_factors) {
      EXPECT_TRUE(name == "..." || bound->rule.Find(name) >= 0) << name;
    }
  }
}

std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const OpDef& op : AllOps()) names.push_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, CompletenessTest, testing::ValuesIn(OpNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace mgc
