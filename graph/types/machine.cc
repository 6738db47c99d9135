#include "graph/types/machine.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Ranks are threads that share one memory. Rates of one core of a current server with AVX-512,
// measured with oneDNN (docs/machines.md); memory is a rank's share.
Machine CpuThreads() {
  Machine machine;
  machine.name = "cpu-threads";
  machine.memory = 8 * kGiB;
  machine.memory_bandwidth = 42e9;
  machine.memory_efficiency = 0.8;
  machine.op_overhead = 1e-6;
  machine.compute = {{"f32", 210e9, 0.9}, {"bf16", 430e9, 0.9}, {"f64", 105e9, 0.9}};
  machine.tiers = {{"memory", kAnyRanks, 20e9, 0.8, 1e-6}};
  return machine;
}

// NVIDIA A100 80GB SXM data sheet; eight in a DGX with NVLink 3 (600 GB/s both ways) and one HDR
// InfiniBand port (200 Gb/s) for each.
Machine A100x8() {
  Machine machine;
  machine.name = "a100x8";
  machine.memory = 80 * kGiB;
  machine.memory_bandwidth = 2039e9;
  machine.memory_efficiency = 0.9;
  machine.op_overhead = 4e-6;
  machine.compute = {
      {"bf16", 312e12, 0.8}, {"tf32", 156e12, 0.8}, {"f32", 19.5e12, 0.9}, {"f64", 19.5e12, 0.9}};
  machine.tiers = {{"nvlink", 8, 300e9, 0.65, 10e-6}, {"infiniband", kAnyRanks, 25e9, 0.9, 20e-6}};
  return machine;
}

// NVIDIA H100 80GB SXM data sheet, dense rates; NVLink 4 (900 GB/s both ways), one NDR InfiniBand
// port (400 Gb/s) for each.
Machine H100x8() {
  Machine machine;
  machine.name = "h100x8";
  machine.memory = 80 * kGiB;
  machine.memory_bandwidth = 3350e9;
  machine.memory_efficiency = 0.9;
  machine.op_overhead = 3e-6;
  machine.compute = {
      {"bf16", 989e12, 0.7}, {"tf32", 494e12, 0.7}, {"f32", 67e12, 0.9}, {"f64", 67e12, 0.9}};
  machine.tiers = {{"nvlink", 8, 450e9, 0.7, 10e-6}, {"infiniband", kAnyRanks, 50e9, 0.9, 20e-6}};
  return machine;
}

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

void CheckRate(const ComputeRate& rate, Checker* checker) {
  const std::string name = absl::StrCat("the rate of `", EscapeBytes(rate.dtype), "`");
  checker->Rate(rate.flops, rate.efficiency, name);
  double before = 0;
  for (const RatePoint& point : rate.points) {
    checker->Rate(point.flops, point.efficiency, absl::StrCat("a point of ", name));
    checker->Require(point.flops > before, "machine_c6",
                     absl::StrCat("points of ", name, " ascend by flops: ", point.flops,
                                  " does not come behind ", before));
    before = point.flops;
  }
}

void CheckTiers(const std::vector<NetworkTier>& tiers, Checker* checker) {
  int64_t inside = 1;
  for (size_t i = 0; i < tiers.size(); ++i) {
    const NetworkTier& tier = tiers[i];
    const std::string name = absl::StrCat("tier `", EscapeBytes(tier.name), "`");
    checker->Rate(tier.bandwidth, tier.efficiency, absl::StrCat("the bandwidth of ", name));
    checker->Seconds(tier.latency, absl::StrCat("the latency of ", name));
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

double ComputeRate::At(double product_flops) const {
  const auto above = std::find_if(points.begin(), points.end(), [&](const RatePoint& point) {
    return point.flops > product_flops;
  });
  if (above == points.end()) return flops * efficiency;
  if (above == points.begin()) return flops * above->efficiency;
  const RatePoint& below = above[-1];
  const double share = std::log(product_flops / below.flops) / std::log(above->flops / below.flops);
  return flops * (below.efficiency + share * (above->efficiency - below.efficiency));
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
         a.cores == b.cores && a.compute == b.compute && a.ops == b.ops && a.tiers == b.tiers;
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

const std::vector<Machine>& MachinePresets() {
  static const auto* const presets = new std::vector<Machine>{CpuThreads(), A100x8(), H100x8()};
  return *presets;
}

absl::StatusOr<Machine> FindMachinePreset(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Machine& machine : MachinePresets()) {
    if (machine.name == name) return machine;
    names.push_back(machine.name);
  }
  return absl::NotFoundError(absl::StrCat("no machine is called `", EscapeBytes(name), "`",
                                          DidYouMean(name, names), "; presets are ",
                                          absl::StrJoin(names, ", ")));
}

}  // namespace mgc
