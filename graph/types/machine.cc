#include "graph/types/machine.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"

namespace mgc {
namespace {

class Checker {
 public:
  void Require(bool holds, absl::string_view label, absl::string_view text) {
    if (!holds) lines_.push_back(absl::StrCat("machine: ", text, " [", label, "]"));
  }
  void Rate(double value, double efficiency, absl::string_view what) {
    Require(std::isfinite(value) && value > 0, "machine_c1",
            absl::StrCat(what, " is positive and finite, not ", value));
    Require(efficiency > 0 && efficiency <= 1, "machine_c2",
            absl::StrCat("the efficiency of ", what, " is in (0, 1], not ", efficiency));
  }
  void Seconds(double value, absl::string_view what) {
    Require(std::isfinite(value) && value >= 0, "machine_c3",
            absl::StrCat(what, " is finite and not negative, not ", value));
  }
  absl::Status ToStatus() const {
    return lines_.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
  }

 private:
  std::vector<std::string> lines_;
};

template <typename T, typename Name>
bool NamedOnce(const std::vector<T>& list, Name name) {
  std::vector<std::string> names;
  names.reserve(list.size());
  for (const T& entry : list) names.emplace_back(name(entry));
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

std::string NameOf(const OpFactor& of) {
  return absl::StrCat("`", EscapeBytes(of.op), "` in `", EscapeBytes(of.dtype), "`");
}

void CheckPoints(absl::Span<const EfficiencyPoint> points, absl::string_view unit,
                 absl::string_view name, Checker* checker) {
  double before = 0;
  for (const EfficiencyPoint& point : points) {
    checker->Rate(point.size, point.efficiency, absl::StrCat("a point of ", name));
    checker->Require(point.size > before, "machine_c6",
                     absl::StrCat("points of ", name, " ascend by ", unit, ": ", point.size,
                                  " does not come behind ", before));
    before = point.size;
  }
}

void CheckRate(const ComputeRate& rate, Checker* checker) {
  const std::string name = absl::StrCat("the rate of `", EscapeBytes(rate.dtype), "`");
  checker->Rate(rate.flops, rate.efficiency, name);
  CheckPoints(rate.points, "flops", name, checker);
}

void CheckTiers(const std::vector<NetworkTier>& tiers, Checker* checker) {
  int64_t inside = 1;
  for (size_t i = 0; i < tiers.size(); ++i) {
    const NetworkTier& tier = tiers[i];
    const std::string name = absl::StrCat("tier `", EscapeBytes(tier.name), "`");
    checker->Rate(tier.bandwidth, tier.efficiency, absl::StrCat("the bandwidth of ", name));
    checker->Seconds(tier.latency, absl::StrCat("the latency of ", name));
    checker->Seconds(tier.hop, absl::StrCat("the hop of ", name));
    CheckPoints(tier.points, "bytes", name, checker);
    if (i + 1 == tiers.size()) {
      checker->Require(tier.ranks == kAnyRanks, "machine_c4",
                       absl::StrCat(name, " is the last one and connects any number of ranks"));
      continue;
    }
    checker->Require(
        tier.ranks > 0 && tier.ranks % inside == 0, "machine_c4",
        absl::StrCat(name, " connects a multiple of ", inside, " ranks, not ", tier.ranks));
    inside = std::max<int64_t>(tier.ranks, 1);
  }
}

}  // namespace

double EfficiencyAt(double size, absl::Span<const EfficiencyPoint> points, double large) {
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const EfficiencyPoint& point) { return point.size > size; });
  if (above == points.end()) return large;
  if (above == points.begin()) return above->efficiency;
  const EfficiencyPoint& below = above[-1];
  const double share = std::log(size / below.size) / std::log(above->size / below.size);
  return below.efficiency + share * (above->efficiency - below.efficiency);
}

const ComputeRate& Machine::RateOf(absl::string_view dtype) const {
  const ComputeRate* found = &compute.front();
  for (const ComputeRate& rate : compute) {
    if (rate.dtype == dtype) return rate;
    if (rate.dtype == "f32") found = &rate;
  }
  return *found;
}

double Machine::FactorOf(absl::string_view op, absl::string_view dtype) const {
  double factor = 1;
  for (const OpFactor& of : ops) {
    if (of.op != op) continue;
    if (of.dtype == dtype) return of.factor;
    if (of.dtype == "f32") factor = of.factor;
  }
  return factor;
}

const NetworkTier& Machine::TierOf(absl::Span<const int64_t> ranks) const {
  for (const NetworkTier& tier : tiers) {
    const bool together =
        tier.ranks == kAnyRanks || std::all_of(ranks.begin(), ranks.end(), [&](int64_t rank) {
          return rank / tier.ranks == ranks.front() / tier.ranks;
        });
    if (together) return tier;
  }
  return tiers.back();
}

bool operator==(const Machine& a, const Machine& b) {
  return a.name == b.name && a.memory == b.memory && a.memory_bandwidth == b.memory_bandwidth &&
         a.memory_efficiency == b.memory_efficiency && a.op_overhead == b.op_overhead &&
         a.cores == b.cores && a.host == b.host && a.compute == b.compute && a.ops == b.ops &&
         a.tiers == b.tiers;
}

absl::Status CheckMachine(const Machine& machine) {
  Checker checker;
  checker.Require(machine.memory > 0, "machine_c1",
                  absl::StrCat("the memory is positive, not ", machine.memory));
  checker.Rate(machine.memory_bandwidth, machine.memory_efficiency, "the bandwidth of the memory");
  checker.Seconds(machine.op_overhead, "the overhead of an op");
  checker.Require(machine.cores >= 0, "machine_c1",
                  absl::StrCat("the number of cores is not negative, not ", machine.cores));
  for (const ComputeRate& rate : machine.compute) CheckRate(rate, &checker);
  for (const OpFactor& of : machine.ops) {
    checker.Rate(of.factor, 1, absl::StrCat("the factor of ", NameOf(of)));
  }
  CheckTiers(machine.tiers, &checker);
  checker.Require(!machine.compute.empty() && !machine.tiers.empty(), "machine_c5",
                  "at least one `compute` and one `tier` are needed");
  checker.Require(NamedOnce(machine.compute,
                            [](const ComputeRate& rate) { return absl::string_view(rate.dtype); }),
                  "machine_c5", "an element type occurs twice");
  checker.Require(NamedOnce(machine.ops, [](const OpFactor& of) { return NameOf(of); }),
                  "machine_c5", "an op occurs twice with the same element type");
  checker.Require(NamedOnce(machine.tiers,
                            [](const NetworkTier& tier) { return absl::string_view(tier.name); }),
                  "machine_c5", "a tier's name occurs twice");
  return checker.ToStatus();
}

}  // namespace mgc
