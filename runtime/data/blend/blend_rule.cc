#include "runtime/data/blend/blend_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace mgc {
namespace {

// Runs of the rule beside one that is followed. Where both have given as many samples in all, a run
// is told by how many more each source has given there; a *neighbour* has given one more of one
// source and one less of another.
//
// When one run takes source a and the other b, what a lacks is not below what b lacks in the first,
// nor the other way round in the second; so the first had given fewer of a, beside the second, than
// of b. Their step evens out the difference by one, and never makes it larger. So a neighbour stays
// one until it has *run into* the run that is followed. When all neighbours there are have done so,
// which is a round, a run that was d exchanges away, along a chain of neighbours, is at most d - 1
// away: each link of the chain stays one or vanishes, and the first has vanished.
//
// All of this holds for numbers of doubles as well, as long as what sources lack is exact: then
// what is compared are real numbers, and equal ones go to the same source in all runs.
class Neighbours {
 public:
  explicit Neighbours(size_t sources) : sources_(sources), seen_(sources * sources) { Restart(); }

  int64_t rounds() const { return rounds_; }

  // The run that is followed takes `taken`, where its sources lack `lacks`.
  void Step(const std::vector<double>& lacks, size_t taken) {
    ++step_;
    const std::array<size_t, 3> top = Largest(lacks);
    size_t left = 0;
    for (const Pair& pair : pairs_) {
      const size_t theirs = Choice(lacks, top, pair);
      Pair next = pair;
      if (theirs != taken) {
        if (theirs == pair.fewer && taken == pair.more) continue;  // has run into it
        if (theirs == pair.fewer) {
          next.fewer = taken;
        } else {
          next.more = theirs;
        }
      }
      int64_t& seen = seen_[next.fewer * sources_ + next.more];
      if (seen == step_) continue;
      seen = step_;
      pairs_[left++] = next;
    }
    pairs_.resize(left);
    if (!pairs_.empty()) return;
    ++rounds_;
    Restart();
  }

 private:
  // A neighbour has given one less of `fewer` and one more of `more`.
  struct Pair {
    size_t fewer, more;
  };

  void Restart() {
    for (size_t fewer = 0; fewer < sources_; ++fewer) {
      for (size_t more = 0; more < sources_; ++more) {
        if (fewer != more) pairs_.push_back({fewer, more});
      }
    }
  }

  // The sources that lack most, in the order of the rule; as many as there are.
  std::array<size_t, 3> Largest(const std::vector<double>& lacks) const {
    std::array<size_t, 3> top = {sources_, sources_, sources_};
    for (size_t source = 0; source < sources_; ++source) {
      size_t at = source;
      for (size_t& place : top) {
        if (place == sources_ || lacks[at] > lacks[place] ||
            (lacks[at] == lacks[place] && at < place)) {
          std::swap(at, place);
        }
        if (at == sources_) break;
      }
    }
    return top;
  }

  // What a neighbour takes.
  size_t Choice(const std::vector<double>& lacks, const std::array<size_t, 3>& top,
                const Pair& pair) const {
    size_t best = pair.fewer;
    double most = lacks[pair.fewer] + 1;
    const auto consider = [&](size_t source, double lack) {
      if (lack < most || (lack == most && source > best)) return;
      best = source;
      most = lack;
    };
    consider(pair.more, lacks[pair.more] - 1);
    for (const size_t source : top) {
      if (source == sources_) break;
      if (source == pair.fewer || source == pair.more) continue;
      consider(source, lacks[source]);
      break;
    }
    return best;
  }

  const size_t sources_;
  std::vector<Pair> pairs_;    // that have not run into it
  std::vector<int64_t> seen_;  // the step in which a pair came, by both sources
  int64_t step_ = 0;
  int64_t rounds_ = 0;
};

// Of more, their pairs are too many to be followed.
constexpr size_t kMostSources = 1024;
// Up to here counts are exact in doubles.
constexpr int64_t kMostSamples = int64_t{1} << 53;

// By how many exchanges any two states differ that the rule can lead to before `sample`, and one
// more: no source has given more than its share and one sample beside it, so that one state has
// given at most `sources` samples that the other has not. Shares are rounded, each by at most
// 2^-52 of itself, and so is their sum.
int64_t MostRounds(int64_t sample, size_t sources) {
  const double rounded =
      std::ldexp(static_cast<double>(sample) * static_cast<double>(sources), -50);
  return static_cast<int64_t>(sources) + 1 + static_cast<int64_t>(rounded);
}

}  // namespace

BlendRule::BlendRule(std::vector<double> weights) : weights_(std::move(weights)) {
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
  least_weight_ = *std::min_element(weights_.begin(), weights_.end());
}

BlendState BlendRule::First() const { return {0, std::vector<int64_t>(weights_.size())}; }

size_t BlendRule::Next(const BlendState& state) const {
  const auto at = static_cast<double>(std::max<int64_t>(state.sample, 1));
  size_t best = 0;
  double largest = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double lacks = weights_[i] * at - static_cast<double>(state.given[i]);
    if (i > 0 && lacks <= largest) continue;
    largest = lacks;
    best = i;
  }
  return best;
}

BlendState BlendRule::Before(int64_t sample, const BlendState& from) const {
  const double sources = static_cast<double>(weights_.size());
  double choices = 1.5 * sources / least_weight_ + 16;
  // Where each source has given several times as many samples as there are sources, what it lacks
  // is the difference of near numbers, and exact.
  const double first = 4 * sources / least_weight_;
  BlendState state;
  while (weights_.size() <= kMostSources && sample <= kMostSamples &&
         choices < static_cast<double>(sample - from.sample) &&
         static_cast<double>(sample) - choices >= first) {
    if (Jump(sample, static_cast<int64_t>(choices), &state)) return state;
    choices *= 4;
  }
  state = from;
  while (state.sample < sample) Advance(&state);
  return state;
}

bool BlendRule::Jump(int64_t sample, int64_t choices, BlendState* state) const {
  const size_t sources = weights_.size();
  *state = {sample - choices, {}};
  int64_t missing = state->sample;
  for (const double weight : weights_) {
    state->given.push_back(static_cast<int64_t>(weight * static_cast<double>(state->sample)));
    missing -= state->given.back();
  }
  if (missing < 0 || missing > static_cast<int64_t>(sources)) return false;
  for (size_t i = 0; i < static_cast<size_t>(missing); ++i) ++state->given[i];
  Neighbours neighbours(sources);
  const int64_t needed = MostRounds(sample, sources);
  std::vector<double> lacks(sources);
  while (state->sample < sample && neighbours.rounds() < needed) {
    for (size_t i = 0; i < sources; ++i) {
      lacks[i] =
          weights_[i] * static_cast<double>(state->sample) - static_cast<double>(state->given[i]);
    }
    neighbours.Step(lacks, Next(*state));
    Advance(state);
  }
  if (neighbours.rounds() < needed) return false;
  while (state->sample < sample) Advance(state);
  return true;
}

}  // namespace mgc
