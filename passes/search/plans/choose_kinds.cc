#include "passes/search/plans/choose_kinds.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

// From one kind of a layer to another that keeps less.
struct Step {
  size_t layer = 0;
  size_t from = 0;
  size_t to = 0;
  int64_t ns = 0;     // more
  int64_t bytes = 0;  // less
};

double Price(const Step& step) {
  return static_cast<double>(step.ns) / static_cast<double>(step.bytes);
}

// Of a layer, from its first kind on: each to the kind at which a byte costs least, so that they
// get dearer.
void AddSteps(const KindCosts& costs, size_t layer, size_t first, std::vector<Step>* steps) {
  size_t at = first;
  while (true) {
    absl::optional<Step> cheapest;
    for (size_t k = 0; k < kNumRecomputeKinds; ++k) {
      if (!costs[k].has_value()) continue;
      const Step step{layer, at, k, std::max<int64_t>(costs[k]->ns - costs[at]->ns, 0),
                      costs[at]->frame_bytes - costs[k]->frame_bytes};
      if (step.bytes <= 0) continue;
      if (!cheapest.has_value() || Price(step) < Price(*cheapest)) cheapest = step;
    }
    if (!cheapest.has_value()) return;
    steps->push_back(*cheapest);
    at = cheapest->to;
  }
}

size_t FirstOf(const KindCosts& costs) {
  const auto first =
      std::find_if(costs.begin(), costs.end(), [](const auto& cost) { return cost.has_value(); });
  return static_cast<size_t>(first - costs.begin());
}

// The step to take behind the first `taken`: where the cheapest saves enough, of those that do the
// one that takes least.
size_t NextOf(const std::vector<Step>& steps, size_t taken, int64_t over,
              const std::vector<size_t>& kinds) {
  size_t next = taken;
  if (steps[taken].bytes < over) return next;
  for (size_t s = taken + 1; s < steps.size(); ++s) {
    const bool is_open = kinds[steps[s].layer] == steps[s].from;
    if (is_open && steps[s].bytes >= over && steps[s].ns < steps[next].ns) next = s;
  }
  return next;
}

// What has been taken in excess, the dearest first.
void TakeBack(std::vector<Step> taken, int64_t over, std::vector<size_t>* kinds) {
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Step& a, const Step& b) { return a.ns > b.ns; });
  for (const Step& step : taken) {
    size_t& kind = (*kinds)[step.layer];
    if (kind != step.to || over + step.bytes > 0) continue;
    kind = step.from;
    over += step.bytes;
  }
}

}  // namespace

KindsChoice ChooseKinds(absl::Span<const KindCosts> layers, int64_t room) {
  std::vector<size_t> kinds;
  std::vector<Step> steps;
  int64_t over = -room;
  for (size_t l = 0; l < layers.size(); ++l) {
    kinds.push_back(FirstOf(layers[l]));
    over += layers[l][kinds[l]]->frame_bytes;
  }
  if (over > 0) {
    for (size_t l = 0; l < layers.size(); ++l) AddSteps(layers[l], l, kinds[l], &steps);
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return Price(a) < Price(b); });
    size_t taken = 0;
    for (; taken < steps.size() && over > 0; ++taken) {
      std::swap(steps[taken], steps[NextOf(steps, taken, over, kinds)]);
      kinds[steps[taken].layer] = steps[taken].to;
      over -= steps[taken].bytes;
    }
    steps.resize(taken);
    if (over <= 0) TakeBack(std::move(steps), over, &kinds);
  }
  KindsChoice choice;
  choice.fits = over <= 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    choice.ns = Later(choice.ns, layers[l][kinds[l]]->ns);
    choice.kinds.push_back(kRecomputeKinds[kinds[l]]);
  }
  return choice;
}

}  // namespace mgc
