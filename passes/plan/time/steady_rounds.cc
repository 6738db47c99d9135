#include "passes/plan/time/steady_rounds.h"

#include <cstddef>

#include "absl/types/optional.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

ExposedTime Difference(const ExposedTime& from, const ExposedTime& to) {
  ExposedTime difference;
  for (const auto& [axes, ns] : to) {
    const auto before = from.find(axes);
    difference[axes] = before == from.end() ? ns : ns - before->second;
  }
  return difference;
}

RoundMark Difference(const RoundMark& from, const RoundMark& to) {
  RoundMark difference;
  difference.at_ns = to.at_ns - from.at_ns;
  difference.busy_ns = to.busy_ns - from.busy_ns;
  difference.transfers_ns = to.transfers_ns - from.transfers_ns;
  difference.collectives.all_ns = to.collectives.all_ns - from.collectives.all_ns;
  difference.collectives.exposed = Difference(from.collectives.exposed, to.collectives.exposed);
  return difference;
}

bool AreSame(const RoundMark& a, const RoundMark& b) {
  return a.at_ns == b.at_ns && a.busy_ns == b.busy_ns && a.transfers_ns == b.transfers_ns &&
         a.collectives.all_ns == b.collectives.all_ns &&
         a.collectives.exposed == b.collectives.exposed;
}

// What a round takes, as far as the last ones tell.
absl::optional<RoundMark> SteadyRound(const std::vector<RoundMark>& marks) {
  const size_t n = marks.size();
  if (n < 3) return absl::nullopt;
  RoundMark round = Difference(marks[n - 2], marks[n - 1]);
  if (!AreSame(round, Difference(marks[n - 3], marks[n - 2]))) return absl::nullopt;
  return round;
}

}  // namespace

bool AddSteadyRounds(int64_t rounds, SimulatedStep* step) {
  std::vector<RoundMark> by_class;
  for (const std::vector<RoundMark>& marks : step->rounds) {
    const absl::optional<RoundMark> round = SteadyRound(marks);
    if (!round.has_value()) return false;
    if (!by_class.empty() && round->at_ns != by_class.front().at_ns) return false;
    by_class.push_back(*round);
  }
  if (by_class.empty()) return false;
  if (Later(step->makespan_ns, Times(rounds, by_class.front().at_ns)) >= kMaxNs) return false;
  const auto add = [rounds](int64_t ns, int64_t* all) { *all = Later(*all, Times(rounds, ns)); };
  add(by_class.front().at_ns, &step->makespan_ns);
  for (size_t c = 0; c < by_class.size(); ++c) {
    const RoundMark& round = by_class[c];
    add(round.busy_ns, &step->busy_ns[c]);
    add(round.transfers_ns, &step->transfers_ns[c]);
    add(round.collectives.all_ns, &step->collectives[c].all_ns);
    for (const auto& [axes, ns] : round.collectives.exposed) {
      add(ns, &step->collectives[c].exposed[axes]);
    }
  }
  return true;
}

}  // namespace mgc
