// Damage to the sums between classes that hold copies of a parameter.

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/plan/instr_collective.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

using ClassList = std::vector<int>;

bool JoinsSome(const Segment& /*segment*/, const Instr& instr) { return JoinsClasses(instr); }

// A sum of copies. Parameters of several layers have one origin: the classes tell them apart.
struct JoiningSum {
  std::string origin;
  ClassList classes;
  int64_t bytes = 0;
};

std::vector<JoiningSum> JoiningSums(Plan* plan) {
  std::map<std::pair<std::string, ClassList>, int64_t> sums;
  for (const InstrPlace& place : InstrsWhere(plan, JoinsSome)) {
    const Instr& instr = place.instr();
    sums[{instr.origin, *JoinedClasses(plan->mesh, plan->stages, instr)}] = place.in(0).bytes;
  }
  std::vector<JoiningSum> list;
  for (const auto& [sum, bytes] : sums) list.push_back({sum.first, sum.second, bytes});
  return list;
}

InstrFilter IsSum(const Plan& plan, const JoiningSum& sum) {
  return [&plan, sum](const Segment&, const Instr& instr) {
    return JoinsClasses(instr) && instr.origin == sum.origin &&
           *JoinedClasses(plan.mesh, plan.stages, instr) == sum.classes;
  };
}

void JoinInstead(Plan* plan, const JoiningSum& sum, const ClassList& classes) {
  for (const InstrPlace& place : InstrsWhere(plan, IsSum(*plan, sum))) {
    SetJoinedClasses(classes, plan->stages, &place.instr());
  }
}

// A class takes no part in a sum of copies: the others do without it, it goes on alone.
bool MemberMissing(Plan* plan, Dice* dice, std::string* what) {
  std::vector<JoiningSum> sums = JoiningSums(plan);
  const auto is_pair = [](const JoiningSum& sum) { return sum.classes.size() < 3; };
  sums.erase(std::remove_if(sums.begin(), sums.end(), is_pair), sums.end());
  const JoiningSum* sum = dice->Pick(&sums);
  if (sum == nullptr) return false;
  ClassList rest = sum->classes;
  const size_t at = dice->Below(rest.size());
  const int alone = rest[at];
  rest.erase(rest.begin() + static_cast<int64_t>(at));
  *what = absl::StrCat(sum->origin, " without class ", alone);
  const InstrFilter is_sum = IsSum(*plan, *sum);
  for (Call& call : plan->classes[static_cast<size_t>(alone)].update) {
    Segment own = plan->segments[static_cast<size_t>(call.segment)];
    for (size_t i = 0; i < own.instrs.size(); ++i) {
      if (!is_sum(own, own.instrs[i])) continue;
      call.segment = static_cast<int>(plan->segments.size());
      plan->segments.push_back(own);
      EraseCollective(plan, {&plan->segments.back(), i});
      break;
    }
  }
  JoinInstead(plan, *sum, rest);
  return true;
}

// A class that holds no copy is to take part.
bool MemberTooMany(Plan* plan, Dice* dice, std::string* what) {
  std::vector<JoiningSum> sums = JoiningSums(plan);
  const JoiningSum* sum = dice->Pick(&sums);
  if (sum == nullptr) return false;
  ClassList more;
  for (int c = 0; c < static_cast<int>(plan->classes.size()); ++c) more.push_back(c);
  if (more == sum->classes) return false;
  *what = absl::StrCat(sum->origin, " joins all classes");
  JoinInstead(plan, *sum, more);
  return true;
}

// The sums of two parameters of one size that other classes hold become one.
bool SumsJoined(Plan* plan, Dice* dice, std::string* what) {
  std::vector<JoiningSum> sums = JoiningSums(plan);
  std::vector<std::pair<JoiningSum, JoiningSum>> pairs;
  for (const JoiningSum& a : sums) {
    for (const JoiningSum& b : sums) {
      const bool apart = std::find_first_of(a.classes.begin(), a.classes.end(), b.classes.begin(),
                                            b.classes.end()) == a.classes.end();
      if (a.bytes == b.bytes && a.classes < b.classes && apart) pairs.emplace_back(a, b);
    }
  }
  const auto* pair = dice->Pick(&pairs);
  if (pair == nullptr) return false;
  *what = absl::StrCat(pair->first.origin, " and ", pair->second.origin);
  ClassList both;
  std::merge(pair->first.classes.begin(), pair->first.classes.end(), pair->second.classes.begin(),
             pair->second.classes.end(), std::back_inserter(both));
  JoinInstead(plan, pair->first, both);
  JoinInstead(plan, pair->second, both);
  return true;
}

// What a class has of a gradient joins the sum of copies before its layers' shares are added.
bool SumBeforeLocal(Plan* plan, Dice* dice, std::string* what) {
  std::vector<std::pair<InstrPlace, size_t>> late;  // a sum of copies, the addition before it
  for (const InstrPlace& place : InstrsWhere(plan, JoinsSome)) {
    for (size_t i = 0; i < place.index; ++i) {
      const Instr& add = place.segment->instrs[i];
      if (add.kind == InstrKind::kCompute && add.outputs == place.instr().inputs) {
        late.emplace_back(place, i);
      }
    }
  }
  const auto* pair = dice->Pick(&late);
  if (pair == nullptr) return false;
  const auto& [place, index] = *pair;
  *what = place.Name();
  std::vector<Instr>& instrs = place.segment->instrs;
  const Instr add = instrs[index];
  place.instr().inputs = place.instr().outputs = {add.inputs[0]};
  const size_t wait = WaitOf(*place.segment, place.index);
  if (wait >= instrs.size()) return false;
  instrs.insert(instrs.begin() + static_cast<int64_t>(wait) + 1, add);
  instrs.erase(instrs.begin() + static_cast<int64_t>(index));
  return true;
}

// The tied embedding's sum between stages becomes nothing, or a sum inside the stage.
bool TiedSum(Plan* plan, Dice* dice, std::string* what) {
  InstrPlace place;
  const InstrFilter joins = [](const Segment&, const Instr& instr) { return JoinsClasses(instr); };
  if (!PickPlace(plan, dice, joins, &place, what)) return false;
  // On one of the stages, or on all.
  const bool all = dice->Flip();
  for (const InstrPlace& other : InstrsWhere(plan, joins)) {
    if (all || other.segment == place.segment) EraseCollective(plan, other);
  }
  return true;
}

}  // namespace

std::vector<MutationKind> SharedMutations() {
  return {
      {"tied embedding sum missing", TiedSum},
      {"sum of copies without a holder", MemberMissing},
      {"sum of copies with all classes", MemberTooMany},
      {"sums of other copies joined", SumsJoined},
      {"sum of copies before the local sum", SumBeforeLocal},
  };
}

}  // namespace mgc
