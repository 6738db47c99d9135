#include "tools/benchmarks/comparison.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr int64_t kWarmUp = 2;

double SecondsOf(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

StepTime Now() { return {SecondsOf(CLOCK_MONOTONIC), SecondsOf(CLOCK_PROCESS_CPUTIME_ID)}; }

absl::Status OfSide(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

// What lies `share` of the way from the least to the greatest of sorted values, between neighbours
// in proportion.
double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(at));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - std::floor(at)) * (sorted[above] - sorted[below]);
}

const Timings& SideOf(const ComparisonResult& result, int side) {
  return result.sides[static_cast<size_t>(side)];
}

// -1 if all are missing.
int Fastest(const ComparisonResult& result, const std::vector<int>& sides) {
  int fastest = -1;
  for (const int side : sides) {
    const std::vector<double>& seconds = SideOf(result, side).seconds;
    if (seconds.empty()) continue;
    if (fastest < 0 || Median(seconds) < Median(SideOf(result, fastest).seconds)) fastest = side;
  }
  return fastest;
}

}  // namespace

Stopwatch::Stopwatch() : begin_(Now()) {}

StepTime Stopwatch::Read() const {
  const StepTime now = Now();
  return {now.seconds - begin_.seconds, now.cpu_seconds - begin_.cpu_seconds};
}

absl::StatusOr<ComparisonResult> Compare(const Comparison& comparison, int64_t repetitions) {
  ComparisonResult result{comparison.name,   comparison.title,        comparison.tokens, {},
                          comparison.claims, comparison.memory_claims};
  std::vector<std::unique_ptr<BenchSide>> sides;
  for (const SideSpec& spec : comparison.sides) {
    absl::StatusOr<std::unique_ptr<BenchSide>> side = spec.make();
    result.sides.push_back({spec.name, {}, {}, {}, ""});
    if (absl::IsUnimplemented(side.status())) {
      result.sides.back().missing = std::string(side.status().message());
      sides.push_back(nullptr);
      continue;
    }
    if (!side.ok()) return OfSide(spec.name, side.status());
    sides.push_back(*std::move(side));
  }
  for (int64_t turn = 0; turn < kWarmUp + repetitions; ++turn) {
    for (size_t s = 0; s < sides.size(); ++s) {
      if (sides[s] == nullptr) continue;
      const absl::StatusOr<StepTime> time = sides[s]->Step();
      if (!time.ok()) return OfSide(result.sides[s].name, time.status());
      if (turn < kWarmUp) continue;
      result.sides[s].seconds.push_back(time->seconds);
      result.sides[s].cpu_seconds.push_back(time->cpu_seconds);
    }
  }
  for (size_t s = 0; s < sides.size(); ++s) {
    if (sides[s] != nullptr) result.sides[s].profile = sides[s]->profile();
  }
  return result;
}

absl::Status PinSides(int cores) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) {
    return absl::UnavailableError(absl::StrCat("sched_getaffinity: ", std::strerror(errno)));
  }
  cpu_set_t kept;
  CPU_ZERO(&kept);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&kept) < cores; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &kept);
  }
  if (sched_setaffinity(0, sizeof kept, &kept) != 0) {
    return absl::UnavailableError(absl::StrCat("sched_setaffinity: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

Ratio Faster(const std::vector<double>& side, const std::vector<double>& peer) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(side.size(), peer.size()); ++i) {
    ratios.push_back(peer[i] / side[i]);
  }
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  return {Quantile(ratios, 0.5), Quantile(ratios, 0.25), Quantile(ratios, 0.75)};
}

absl::optional<Finding> Judge(const ComparisonResult& result, const Claim& claim) {
  Finding finding;
  finding.side = Fastest(result, claim.sides);
  finding.peer = Fastest(result, claim.peers);
  if (finding.side < 0 || finding.peer < 0) return absl::nullopt;
  const Timings& side = SideOf(result, finding.side);
  const Timings& peer = SideOf(result, finding.peer);
  finding.ratio = Faster(side.seconds, peer.seconds);
  finding.cpu_ratio = Faster(side.cpu_seconds, peer.cpu_seconds).median;
  finding.least = claim.least;
  return finding;
}

absl::optional<double> MemoryRatio(const ComparisonResult& result, const MemoryClaim& claim) {
  const int64_t side = SideOf(result, claim.side).profile.peak_bytes;
  const int64_t peer = SideOf(result, claim.peer).profile.peak_bytes;
  if (side == 0 || peer == 0) return absl::nullopt;
  return static_cast<double>(side) / static_cast<double>(peer);
}

}  // namespace mgc
