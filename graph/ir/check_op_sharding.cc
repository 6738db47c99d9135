#include "graph/ir/check_op_sharding.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/collective.h"
#include "graph/types/even_cut.h"
#include "graph/types/factor_rule.h"
#include "graph/types/sharding_text.h"

namespace mgc {
namespace {

std::string NameOf(const LaidOut& value) { return absl::StrCat("%", EscapeBytes(value.name)); }
std::string Shown(const LaidOut& value, const Mesh& mesh) {
  return absl::StrCat(NameOf(value), " ", ToString(*value.sharding, mesh));
}

// Dims behind `...` are factors called .0, .1, ...
std::string NameOfFactor(const Factor& factor) {
  const std::string& name = factor.name;
  return name[0] == '.' ? absl::StrCat(name.substr(1), " of `...`") : name;
}

// How the values of one use cut the factors of its rule.
class CutCheck {
 public:
  CutCheck(const OpSharding& use, const FactorRule& rule, std::vector<ShardingFault>* faults)
      : use_(use),
        mesh_(*use.mesh),
        rule_(rule),
        faults_(*faults),
        axes_(rule_.factors.size()),
        known_by_(rule_.factors.size(), nullptr),
        in_operand_(rule_.factors.size(), false) {}

  // False when nothing can be said about what is owed.
  bool Run() {
    for (size_t i = 0; i < use_.operands.size(); ++i) {
      if (!Bind(rule_.operands[i], use_.operands[i], ShardingFaultKind::kOperandCut)) return false;
    }
    for (size_t f = 0; f < known_by_.size(); ++f) in_operand_[f] = known_by_[f] != nullptr;
    if (!AxesServeOnce()) return false;
    for (size_t r = 0; r < use_.results.size(); ++r) {
      if (!Bind(rule_.results[r], use_.results[r], ShardingFaultKind::kResultCut)) return false;
    }
    return AxesServeOnce() && BindStorage();
  }

  const AxisList& axes(size_t factor) const { return axes_[factor]; }
  bool InOperand(size_t factor) const { return in_operand_[factor]; }
  AxisSet served() const { return served_; }
  const AxisList& storage() const { return storage_; }

 private:
  bool Fail(ShardingFaultKind kind, absl::string_view text) {
    faults_.push_back({kind, absl::StrCat(use_.op->name, ": ", text)});
    return false;
  }

  // Gives the factors of a tensor the axes that cut it; they must be what is known already.
  bool Bind(const TensorFactors& factors, const LaidOut& value, ShardingFaultKind kind) {
    FactorAxes mine(rule_.factors.size());
    for (size_t d = 0; d < factors.size(); ++d) {
      if (DistributeAxes(factors[d], rule_, value.sharding->dims[d], mesh_, &mine)) continue;
      return Fail(kind, absl::StrCat("the axes of dim ", d, " of ", Shown(value, mesh_),
                                     " do not divide its factors"));
    }
    for (const DimFactors& dim : factors) {
      for (int f : dim) {
        if (!BindFactor(static_cast<size_t>(f), mine[static_cast<size_t>(f)], value, kind)) {
          return false;
        }
      }
    }
    return true;
  }

  bool BindFactor(size_t f, const AxisList& axes, const LaidOut& value, ShardingFaultKind kind) {
    if (rule_.factors[f].whole && !axes.empty()) {
      return Fail(kind,
                  absl::StrCat(Shown(value, mesh_), " cuts factor ", NameOfFactor(rule_.factors[f]),
                               ", which must be whole: an all_gather over ", ListText(axes, mesh_),
                               " is missing before it"));
    }
    if (known_by_[f] != nullptr && axes_[f] != axes) return FailCut(f, axes, value, kind);
    if (known_by_[f] == nullptr) known_by_[f] = &value;
    axes_[f] = axes;
    return true;
  }

  bool FailCut(size_t f, const AxisList& axes, const LaidOut& value, ShardingFaultKind kind) {
    const LaidOut& other = *known_by_[f];
    std::string text = absl::StrCat(Shown(value, mesh_), " cuts factor ",
                                    NameOfFactor(rule_.factors[f]), " over ", ListText(axes, mesh_),
                                    ", ", Shown(other, mesh_), " over ", ListText(axes_[f], mesh_));
    const bool of_operands = kind == ShardingFaultKind::kOperandCut;
    if (of_operands && (axes.empty() || axes_[f].empty())) {
      const bool this_cut = axes_[f].empty();
      absl::StrAppend(&text, ": an all_gather of ", NameOf(this_cut ? value : other),
                      " or a shard_slice of ", NameOf(this_cut ? other : value), " over ",
                      ListText(this_cut ? axes : axes_[f], mesh_), " is missing before it");
    }
    return Fail(kind, text);
  }

  bool AxesServeOnce() {
    served_ = AxisSet();
    for (const AxisList& axes : axes_) {
      if (served_.Intersects(axes.AsSet())) {
        return Fail(
            ShardingFaultKind::kOperandCut,
            absl::StrCat("axis ", mesh_.GroupName(served_ & axes.AsSet()), " serves two factors"));
      }
      served_ |= axes.AsSet();
    }
    return true;
  }

  // Storage axes cut the flat tiles of an elementwise op's values alike.
  bool BindStorage() {
    const TensorFactors* stored = nullptr;
    const auto bind = [&](const LaidOut& value, const TensorFactors& factors) {
      const AxisList& storage = value.sharding->storage;
      if (factors.empty()) return storage.empty();
      if (stored == nullptr) storage_ = storage;
      const bool alike =
          storage == storage_ && (stored == nullptr || storage_.empty() || *stored == factors);
      stored = &factors;
      return alike;
    };
    bool alike = true;
    for (size_t i = 0; i < use_.operands.size(); ++i) {
      alike = alike && bind(use_.operands[i], rule_.operands[i]);
    }
    for (size_t r = 0; r < use_.results.size(); ++r) {
      alike = alike && bind(use_.results[r], rule_.results[r]);
    }
    if (alike && (storage_.empty() || use_.op->offset_factors.empty())) return true;
    return Fail(ShardingFaultKind::kOperandCut,
                "works on flat pieces that are not cut alike: an all_gather of the pieces or a "
                "shard_slice into them is missing before it");
  }

  const OpSharding& use_;
  const Mesh& mesh_;
  const FactorRule& rule_;
  std::vector<ShardingFault>& faults_;
  FactorAxes axes_;
  std::vector<const LaidOut*> known_by_;  // by factor: the first value that has it
  std::vector<bool> in_operand_;
  AxisSet served_;    // axes that cut a factor
  AxisList storage_;  // axes that cut flat tiles
};

// What the results owe: what linear operands owe, and what contraction leaves.
class OwedCheck {
 public:
  OwedCheck(const OpSharding& use, const FactorRule& rule, const CutCheck& cut,
            std::vector<ShardingFault>* faults)
      : use_(use), mesh_(*use.mesh), rule_(rule), cut_(cut), faults_(*faults) {}

  void Run() {
    if (!FindOwed()) return;
    for (size_t r = 0; r < use_.results.size(); ++r) CheckResult(r);
  }

 private:
  bool Fail(ShardingFaultKind kind, absl::string_view text) {
    faults_.push_back({kind, absl::StrCat(use_.op->name, ": ", text)});
    return false;
  }

  bool IsLinear(size_t operand) const {
    const std::vector<int>& linear = use_.op->linear_operands;
    if (use_.op->linearity == Linearity::kNone) return false;
    if (linear.empty() || Contains(linear, operand)) return true;
    return std::any_of(use_.op->linear_terms.begin(), use_.op->linear_terms.end(),
                       [&](const std::vector<int>& term) { return Contains(term, operand); });
  }
  static bool Contains(const std::vector<int>& list, size_t operand) {
    return std::find(list.begin(), list.end(), static_cast<int>(operand)) != list.end();
  }

  // Operands multiplied with each other: all linear ones, or those of each term of a sum.
  std::vector<std::vector<size_t>> Terms() const {
    std::vector<std::vector<size_t>> terms;
    std::vector<bool> placed(use_.operands.size(), false);
    for (const std::vector<int>& term : use_.op->linear_terms) {
      terms.emplace_back();
      for (int i : term) {
        terms.back().push_back(static_cast<size_t>(i));
        placed[static_cast<size_t>(i)] = true;
      }
    }
    const bool joint = use_.op->linearity == Linearity::kJoint;
    for (size_t i = 0; i < use_.operands.size(); ++i) {
      if (!IsLinear(i) || placed[i]) continue;
      if (joint || terms.empty()) terms.emplace_back();
      terms.back().push_back(i);
    }
    return terms;
  }

  bool HasFactor(size_t operand, size_t f) const {
    for (const DimFactors& dim : rule_.operands[operand]) {
      if (std::find(dim.begin(), dim.end(), static_cast<int>(f)) != dim.end()) return true;
    }
    return false;
  }
  bool InAnyResult(size_t f) const {
    for (size_t r = 0; r < use_.results.size(); ++r) {
      if (rule_.InResult(static_cast<int>(f), static_cast<int>(r))) return true;
    }
    return false;
  }

  // The sums that the terms leave in the results; of several terms each leaves the same.
  bool FindOwed() {
    for (size_t i = 0; i < use_.operands.size(); ++i) {
      if (!MayOwe(i)) return false;
    }
    const std::vector<std::vector<size_t>> terms = Terms();
    std::vector<AxisSet> left;
    for (const std::vector<size_t>& term : terms) {
      AxisSet owed;
      if (!SumOfTerm(term, terms.size() > 1, &owed)) return false;
      left.push_back(owed);
      owed_ |= owed;
    }
    for (size_t t = 0; t < terms.size(); ++t) {
      const AxisSet missing = owed_ - left[t];
      if (!missing.empty()) return FailTerm(use_.operands[terms[t][0]], missing);
    }
    return true;
  }

  bool MayOwe(size_t operand) {
    const LaidOut& value = use_.operands[operand];
    const AxisSet sum = IsLinear(operand) ? AxisSet() : value.sharding->sum;
    if (sum.empty() && value.sharding->max.empty()) return true;
    return Fail(ShardingFaultKind::kOwedOperand,
                absl::StrCat(Shown(value, mesh_), " owes ",
                             OwedText(sum, value.sharding->max, mesh_), ", and ", use_.op->name,
                             " is not linear in it: ", PayText(sum, value.sharding->max, mesh_),
                             " is missing before it"));
  }

  // What a term owes: the sums of its operands, and of a sum of terms the axes of what it
  // contracts.
  bool SumOfTerm(const std::vector<size_t>& term, bool one_of_many, AxisSet* owed) {
    AxisSet cut = one_of_many ? cut_.storage().AsSet() : cut_.served() | cut_.storage().AsSet();
    AxisSet contracted;
    for (size_t f = 0; one_of_many && f < rule_.factors.size(); ++f) {
      const bool mine = std::any_of(term.begin(), term.end(),
                                    [&](size_t operand) { return HasFactor(operand, f); });
      const bool stays = InAnyResult(f);
      if (mine || stays) cut |= cut_.axes(f).AsSet();
      if (mine && !stays && !rule_.factors[f].maximum) contracted |= cut_.axes(f).AsSet();
    }
    for (size_t operand : term) {
      const LaidOut& value = use_.operands[operand];
      const AxisSet sum = value.sharding->sum;
      if (owed->Intersects(sum)) {
        return Fail(
            ShardingFaultKind::kOwedOperand,
            absl::StrCat(Shown(value, mesh_), " and an operand before it owe the same sum over ",
                         mesh_.GroupName(*owed & sum),
                         ", and are multiplied: an "
                         "all_reduce over it is missing before one of them"));
      }
      if (sum.Intersects(cut)) {
        return Fail(
            ShardingFaultKind::kOwedOperand,
            absl::StrCat(Shown(value, mesh_), " owes a sum over ", mesh_.GroupName(sum & cut),
                         ", which cuts another value: an all_reduce over it is missing "
                         "before it"));
      }
      *owed |= sum;
    }
    *owed |= contracted;
    return true;
  }

  bool FailTerm(const LaidOut& value, AxisSet missing) {
    const std::string axes = mesh_.GroupName(missing);
    return Fail(ShardingFaultKind::kOwedOperand,
                absl::StrCat(Shown(value, mesh_), " does not owe the sum over ", axes,
                             " that what it is added to owes; it would be counted ",
                             mesh_.Size(missing), " times: ", PayText(missing, AxisSet(), mesh_),
                             " is missing before the others, or a lift of ", NameOf(value)));
  }

  // Where a sum comes from: `factor k is cut over tp and summed, ` or `%x owes it, `.
  std::string CauseOf(AxisSet sum, size_t r) const {
    for (const LaidOut& value : use_.operands) {
      if (value.sharding->sum.Intersects(sum)) return absl::StrCat(NameOf(value), " owes it, ");
    }
    for (size_t f = 0; f < rule_.factors.size(); ++f) {
      if (rule_.InResult(static_cast<int>(f), static_cast<int>(r))) continue;
      if (!cut_.axes(f).AsSet().Intersects(sum)) continue;
      return absl::StrCat("factor ", NameOfFactor(rule_.factors[f]), " is cut over ",
                          mesh_.GroupName(cut_.axes(f).AsSet()), " and summed, ");
    }
    return "";
  }

  void CheckResult(size_t r) {
    const Sharding& sharding = *use_.results[r].sharding;
    Sharding expected = sharding;
    expected.sum = owed_;
    expected.max = AxisSet();
    for (size_t f = 0; f < rule_.factors.size(); ++f) {
      if (!cut_.InOperand(f) || rule_.InResult(static_cast<int>(f), static_cast<int>(r))) continue;
      (rule_.factors[f].maximum ? expected.max : expected.sum) |= cut_.axes(f).AsSet();
    }
    if (rule_.results[r].empty()) expected.sum |= cut_.storage().AsSet();
    if (expected == sharding) return;
    const AxisSet lost_sum = expected.sum - sharding.sum;
    const AxisSet lost_max = expected.max - sharding.max;
    const bool lost = !(lost_sum | lost_max).empty();
    Fail(ShardingFaultKind::kOwedResult,
         absl::StrCat("result ", Shown(use_.results[r], mesh_), " must be ",
                      ToString(expected, mesh_),
                      lost ? absl::StrCat(": ", CauseOf(lost_sum, r),
                                          OwedText(lost_sum, lost_max, mesh_), " is owed here, ",
                                          PayText(lost_sum, lost_max, mesh_), " has to follow")
                           : absl::StrCat(": nothing leaves ",
                                          OwedText(sharding.sum - expected.sum,
                                                   sharding.max - expected.max, mesh_))));
  }

  const OpSharding& use_;
  const Mesh& mesh_;
  const FactorRule& rule_;
  const CutCheck& cut_;
  std::vector<ShardingFault>& faults_;
  AxisSet owed_;  // sums that linear operands leave
};

std::vector<ShardingFault> CheckCollective(const OpSharding& use) {
  if (use.operands.size() != 1 || use.results.size() != 1) return {};
  const Sharding& from = *use.operands[0].sharding;
  const Sharding& to = *use.results[0].sharding;
  if (CollectiveBetween(from, to, use.op->name).ok()) {
    const std::vector<Dim>& dims = use.operands[0].type->dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (PiecesNest(dims[d], from.dims[d], to.dims[d], *use.mesh)) continue;
      return {{ShardingFaultKind::kCollective,
               absl::StrCat(Shown(use.operands[0], *use.mesh), " cuts dim ", d, " of ",
                            dims[d].size, " elements unevenly: ", use.op->name, " to ",
                            ToString(to, *use.mesh), " does not bring together what lies there")}};
    }
    return {};
  }
  const bool reduces = use.op->name == "all_reduce" || use.op->name == "reduce_scatter";
  return {{ShardingFaultKind::kCollective,
           absl::StrCat(ToString(to, *use.mesh), " does not come from ", ToString(from, *use.mesh),
                        " by one ", use.op->name,
                        reduces && from.Owed().empty()
                            ? absl::StrCat(": ", NameOf(use.operands[0]),
                                           " owes nothing, and copies of it would be added up")
                            : "")}};
}

}  // namespace

std::vector<ShardingFault> CheckOpSharding(const OpSharding& use) {
  if (use.op->collective) return CheckCollective(use);
  if (use.op->name == "reshard") {
    if (use.operands.size() != 1 || use.results.size() != 1) return {};
    const AxisSet more = use.results[0].sharding->max - use.operands[0].sharding->max;
    if (more.empty()) return {};
    return {{ShardingFaultKind::kOwedResult, "is a `reshard` that makes a maximum owed"}};
  }
  std::vector<const TensorType*> operands;
  std::vector<const TensorType*> results;
  for (const LaidOut& value : use.operands) operands.push_back(value.type);
  for (const LaidOut& value : use.results) results.push_back(value.type);
  const absl::StatusOr<FactorRule> rule = RuleOf(*use.op, OpUse{*use.attrs, operands, results});
  std::vector<ShardingFault> faults;
  if (!rule.ok()) {
    return {
        {ShardingFaultKind::kNoRule, absl::StrCat(use.op->name, ": ", rule.status().message())}};
  }
  CutCheck cut(use, *rule, &faults);
  if (cut.Run()) OwedCheck(use, *rule, cut, &faults).Run();
  return faults;
}

}  // namespace mgc
