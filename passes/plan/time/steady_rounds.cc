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

int64_t LengthOf(const std::vector<RoundMark>& marks, size_t round) {
  return marks[round + 1].at_ns - marks[round].at_ns;
}

}  // namespace

bool AddSteadyRounds(int64_t rounds, SimulatedStep* step) {
  std::vector<RoundMark> by_class;
  bool lasts = false;
  for (const std::vector<RoundMark>& marks : step->rounds) {
    const size_t n = marks.size();
    if (n < 3) return false;
    by_class.push_back(Difference(marks[n - 2], marks[n - 1]));
    if (by_class.back().at_ns != by_class.front().at_ns) return false;
    lasts = lasts || LengthOf(marks, n - 2) == LengthOf(marks, n - 3);
  }
  if (!lasts) return false;
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
