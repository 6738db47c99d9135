#include "runtime/state/carried.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"

namespace mgc {

void PutCarried(const CarriedNumbers& numbers, Executor& executor) {
  const Plan& plan = executor.plan();
  for (const PlanClass& plan_class : plan.classes) {
    for (const NamedAddress& carried : plan_class.carried) {
      const auto given = numbers.find(carried.name);
      if (given == numbers.end()) continue;
      const double value = given->second;
      for (int64_t rank : RanksOfClass(plan, plan_class.coordinate)) {
        if (!executor.local().Contains(rank)) continue;
        executor.Put(rank, carried.address, sizeof value, [value](char* to) {
          std::copy_n(reinterpret_cast<const char*>(&value), sizeof value, to);
        });
      }
    }
  }
}

absl::StatusOr<CarriedNumbers> GetCarried(const Executor& executor) {
  const Plan& plan = executor.plan();
  std::string mine;
  for (const PlanClass& plan_class : plan.classes) {
    for (const NamedAddress& carried : plan_class.carried) {
      for (int64_t rank : RanksOfClass(plan, plan_class.coordinate)) {
        if (!executor.local().Contains(rank)) continue;
        double value = 0;
        executor.Get(rank, carried.address, sizeof value, &value);
        // Hexadecimal: exact.
        absl::StrAppend(&mine, carried.name, "=", absl::StrFormat("%a", value), "\n");
        break;
      }
    }
  }
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, executor.team().Gather(mine));
  CarriedNumbers numbers;
  for (const std::string& given : all) {
    for (absl::string_view line : absl::StrSplit(given, '\n', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(line, absl::MaxSplits('=', 1));
      numbers.emplace(parts.first, std::strtod(std::string(parts.second).c_str(), nullptr));
    }
  }
  return numbers;
}

}  // namespace mgc
