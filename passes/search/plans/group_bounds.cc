#include "passes/search/plans/group_bounds.h"

#include <algorithm>
#include <iterator>

#include "absl/types/optional.h"
#include "passes/search/plans/bound_plan.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {
namespace {

bool AreOfOneKind(const Candidate& a, const Candidate& b) {
  return a.pp == b.pp && a.vp == b.vp && a.schedule == b.schedule;
}

// The most chunks of a rank that candidates have which are beside `i` and have its stages.
int64_t MostChunks(const std::vector<Candidate>& candidates, size_t i) {
  const auto other =
      std::find_if(candidates.begin() + static_cast<int64_t>(i), candidates.end(),
                   [&](const Candidate& candidate) { return candidate.pp != candidates[i].pp; });
  return std::prev(other)->vp;
}

bool DifferInZeroAlone(const Candidate& a, const Candidate& b) {
  return AreOfOneKind(a, b) && a.order == b.order;
}

}  // namespace

const std::vector<CandidateBound>& GroupBounds::Of(size_t group, const ModelProfile& profile) {
  const auto [it, is_new] = bounds_.try_emplace({group, group});
  if (is_new) it->second = Make(group, profile, true);
  return it->second;
}

const std::vector<CandidateBound>& GroupBounds::Expected(size_t finer, size_t group,
                                                         const ModelProfile& profile) {
  const auto [it, is_new] = bounds_.try_emplace({finer, group});
  if (is_new) it->second = Make(finer, tree_.Expect(profile, group, finer), false);
  return it->second;
}

std::vector<CandidateBound> GroupBounds::Make(size_t group, const ModelProfile& profile,
                                              bool all) const {
  const SearchRequest& request = oracle_.request();
  const Machine& machine = request.options.machine;
  const std::vector<Candidate>& candidates = oracle_.space().groups[group].candidates;
  std::vector<CandidateBound> bounds;
  bounds.reserve(candidates.size());
  // Those of a kind follow each other, and of those the ones that differ in ZeRO alone.
  ParallelConfig config;
  ParallelConfig own;
  CheckedConfig checked;
  absl::optional<PlanSpread> first;
  size_t kind = 0;
  int64_t most_chunks = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (i == 0 || candidates[i - 1].pp != candidate.pp) most_chunks = MostChunks(candidates, i);
    if (!AreOfOneKind(candidates[kind], candidate)) kind = i;
    const bool has_usual_chunks = candidate.vp <= 1 || candidate.vp == most_chunks;
    const bool is_first = has_usual_chunks && candidate.order == candidates[kind].order &&
                          (i == kind || candidate.zero != candidates[i - 1].zero);
    if (!all && !is_first) continue;
    if (i == 0 || !DifferInZeroAlone(candidates[i - 1], candidate)) {
      config = oracle_.space().ConfigOf(group, i);
      checked = CheckConfig(config, request.dims);
      first.emplace(config, checked, profile);
      own = config;
    }
    own.zero = candidate.zero;
    own.zero_group = candidate.zero_group;
    const PlanSpread spread(*first, own);
    const PlanBound even = BoundPlan(spread, machine);
    CandidateBound bound{even.step_ns, even.step_ns, even.peak_bytes, even.held_bytes};
    if (all && oracle_.HasFreeCuts(own)) {
      bound.least_ns = std::min(bound.least_ns, LeastOverCutsNs(spread, machine));
    }
    bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace mgc
