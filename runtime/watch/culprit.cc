// Waits::FindCulprit: who keeps a run from going on. Every look of a watchdog takes time about
// linear in ranks and processes.

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "runtime/run/where.h"
#include "runtime/watch/ages.h"
#include "runtime/watch/waits.h"

namespace mgc {
namespace {

// An action may take so many times what it has ever taken.
constexpr int64_t kTimesUsual = 5;
constexpr int64_t kMostUsualNs = int64_t{1} << 58;
// What a wait gets beyond that: who is waited for is late first, and is to be named.
constexpr int64_t kWaitSlackNs = 1'000'000'000;

int64_t LimitOf(const RankProgress& rank, int64_t floor_ns) {
  const int64_t usual = std::clamp<int64_t>(rank.usual_ns.get(), 0, kMostUsualNs);
  return std::max(floor_ns, kTimesUsual * usual);
}

}  // namespace

// Chains of waits, of one look: each rank, collective and process is looked at once.
class Waits::Chains {
 public:
  explicit Chains(const Waits& waits)
      : waits_(waits),
        ends_(static_cast<size_t>(waits.board_.num_ranks()), kUnknown),
        processes_(static_cast<size_t>(waits.board_.num_processes())) {}

  // The rank at the end of the chain that begins with a rank: it waits for nobody, or for one
  // that waits for it.
  int64_t EndOf(int64_t rank) {
    std::vector<int64_t> path;
    while (end(rank) == kUnknown) {
      end(rank) = kOnPath;
      path.push_back(rank);
      const int64_t blocker = BlockerOf(waits_.Look(rank));
      if (blocker < 0) break;
      rank = blocker;
    }
    const int64_t last = end(rank) >= 0 ? end(rank) : path.back();
    for (int64_t passed : path) end(passed) = last;
    return last;
  }

  // Of the end of a chain: neither its process nor one of those it exchanges with computes, for
  // whichever rank, or gets or sends anything. One that computes has a limit of its own, and may
  // have no worker left for an exchange that all its members stand at.
  bool IsStuck(int64_t rank, int64_t now_ns, int64_t limit_ns) {
    const int64_t since = waits_.board_.ranks()[static_cast<size_t>(rank)].since_ns.get();
    if (AgeAt(now_ns, since) <= limit_ns) return false;
    const auto stands_still = [&](int64_t member) {
      const Process& process = ProcessOf(member);
      return !process.computes && AgeAt(now_ns, process.moved_ns) > limit_ns;
    };
    if (!stands_still(rank)) return false;
    const Seen seen = waits_.Look(rank);
    if (seen.at.activity.get() != RankActivity::kWaiting || !seen.is_sane || !seen.has_item) {
      return true;
    }
    const std::vector<int64_t> partners = waits_.PartnersOf(seen);
    return std::all_of(partners.begin(), partners.end(), [&](int64_t partner) {
      return partner < 0 || partner >= waits_.board_.num_ranks() || stands_still(partner);
    });
  }

 private:
  static constexpr int64_t kUnknown = -1;
  static constexpr int64_t kOnPath = -2;

  struct Process {
    bool is_known = false;
    bool computes = false;
    int64_t moved_ns = 0;
  };
  // Ranks with one key wait for the same: first rank of the group, its name, what they exchange,
  // step, and whether that evaluates.
  using Meeting = std::tuple<int64_t, std::string, CollectiveKind, int64_t, bool>;

  int64_t& end(int64_t rank) { return ends_[static_cast<size_t>(rank)]; }

  int64_t BlockerOf(const Seen& seen) {
    if (!seen.has_item || ItemOf(seen.at).transfer >= 0) return waits_.BlockerOf(seen);
    if (!seen.is_sane || seen.at.activity.get() != RankActivity::kWaiting) return -1;
    const InstrCollective& collective =
        CollectiveOf(*seen.tables, seen.rank_class, ItemOf(seen.at));
    const Mesh& mesh = waits_.plan_.mesh;
    int64_t first = seen.rank;
    for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
      if (!collective.axes().Contains(axis)) continue;
      first -= mesh.Coordinate(seen.rank, axis) * mesh.stride(axis);
    }
    const auto [at, is_new] =
        blockers_.try_emplace(Meeting(first, collective.group, collective.kind(),
                                      seen.at.steps.get(), seen.at.eval.get()),
                              -1);
    if (is_new) at->second = waits_.BlockerOf(seen);
    return at->second;
  }

  const Process& ProcessOf(int64_t rank) {
    const int number = waits_.board_.ProcessOf(rank);
    Process& process = processes_[static_cast<size_t>(number)];
    if (process.is_known) return process;
    process.is_known = true;
    const RankRange range = waits_.board_.RanksOf(number);
    for (int64_t r = range.begin; r < range.end; ++r) {
      const RankProgress& at = waits_.board_.ranks()[static_cast<size_t>(r)];
      process.computes = process.computes || at.activity.get() == RankActivity::kComputing ||
                         at.item_since_ns.get() != 0;
      if (r == range.begin) process.moved_ns = at.moved_ns.get();
    }
    return process;
  }

  const Waits& waits_;
  std::vector<int64_t> ends_;  // by rank
  std::vector<Process> processes_;
  std::map<Meeting, int64_t> blockers_;
};

Culprit Waits::FindSilent(int64_t now_ns, int64_t limit_ns) const {
  Culprit culprit;
  for (int process = 0; process < board_.num_processes(); ++process) {
    const ProcessEntry& entry = board_.process(process);
    const ProcessStage stage = entry.stage.get();
    if (stage == ProcessStage::kAbsent || stage == ProcessStage::kEnded) continue;
    const int64_t heard = entry.heartbeat_ns.get();
    const int64_t silent = AgeAt(now_ns, heard);
    if (silent <= limit_ns) continue;
    culprit.process = process;
    culprit.rank = board_.RanksOf(process).begin;
    culprit.doing = absl::StrCat("has not answered for ", Seconds(silent),
                                 " (stopped, or cut off); it was last seen when it ",
                                 Doing(culprit.rank, now_ns - silent));
    break;
  }
  return culprit;
}

// The rank that has computed for the longest beyond its limit; without one, the end of a chain of
// waits that does not move.
Culprit Waits::FindInStep(int64_t now_ns, int64_t floor_ns) const {
  Culprit culprit;
  absl::optional<Chains> chains;
  int64_t longest = 0;
  for (int64_t rank = 0; rank < board_.num_ranks(); ++rank) {
    const RankProgress at = board_.ranks()[static_cast<size_t>(rank)];
    const int64_t limit = LimitOf(at, floor_ns);
    const int64_t item_since = at.item_since_ns.get();
    const int64_t stood = AgeAt(now_ns, item_since > 0 ? item_since : at.since_ns.get());
    if (stood <= std::max(limit, longest)) continue;
    if (at.activity.get() == RankActivity::kComputing || item_since > 0) {
      longest = stood;
      culprit.rank = rank;
    } else if (at.activity.get() == RankActivity::kWaiting && longest == 0) {
      if (!chains.has_value()) chains.emplace(*this);
      const int64_t end = chains->EndOf(rank);
      if (chains->IsStuck(end, now_ns, limit + kWaitSlackNs)) culprit.rank = end;
    } else if (at.activity.get() == RankActivity::kHeld && longest == 0) {
      culprit.rank = rank;
    }
  }
  if (culprit.rank >= 0) culprit.doing = Doing(culprit.rank, now_ns);
  return culprit;
}

// Since when a process has been at its stage, or its ranks outside of steps; now while they are
// not.
int64_t Waits::SinceOutside(int process, int64_t now_ns) const {
  int64_t since = board_.process(process).since_ns.get();
  const RankRange range = board_.RanksOf(process);
  for (int64_t rank = range.begin; rank < range.end; ++rank) {
    const RankProgress& progress = board_.ranks()[static_cast<size_t>(rank)];
    if (progress.activity.get() != RankActivity::kOutside) return now_ns;
    since = std::max(since, progress.since_ns.get());
  }
  return since;
}

// A process that others wait for between steps.
Culprit Waits::FindBetweenSteps(int64_t now_ns, int64_t limit_ns) const {
  Culprit culprit;
  bool waited_for = false;
  for (int process = 0; process < board_.num_processes(); ++process) {
    const ProcessStage stage = board_.process(process).stage.get();
    const int64_t time = AgeAt(now_ns, SinceOutside(process, now_ns));
    if (time <= limit_ns) continue;
    waited_for = waited_for || stage == ProcessStage::kAgreeing;
    if (stage != ProcessStage::kStarting && stage != ProcessStage::kRunning) continue;
    culprit.process = process;
    culprit.rank = board_.RanksOf(process).begin;
    culprit.doing = absl::StrCat(
        stage == ProcessStage::kStarting ? "has been starting for " : "has been between steps for ",
        Seconds(time));
  }
  return waited_for ? culprit : Culprit();
}

Culprit Waits::FindCulprit(int64_t now_ns, int64_t floor_ns) const {
  Culprit culprit = FindSilent(now_ns, floor_ns);
  if (culprit.rank < 0) culprit = FindInStep(now_ns, floor_ns);
  if (culprit.rank < 0) culprit = FindBetweenSteps(now_ns, floor_ns);
  if (culprit.rank < 0) return culprit;
  const RankRange own = culprit.process >= 0 ? board_.RanksOf(culprit.process)
                                             : RankRange{culprit.rank, culprit.rank + 1};
  for (int64_t rank = 0; rank < board_.num_ranks(); ++rank) {
    const auto activity = board_.ranks()[static_cast<size_t>(rank)].activity.get();
    if (!own.Contains(rank) && activity != RankActivity::kComputing) culprit.waits.push_back(rank);
  }
  return culprit;
}

}  // namespace mgc
