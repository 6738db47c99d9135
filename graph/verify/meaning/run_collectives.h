// Collectives of a run: between the start and the wait of one, its operands and then its results
// are kept here, and its result slots hold nothing.

#ifndef MGC_GRAPH_VERIFY_MEANING_RUN_COLLECTIVES_H_
#define MGC_GRAPH_VERIFY_MEANING_RUN_COLLECTIVES_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/eval/eval_collective.h"
#include "graph/eval/models/residue_model.h"
#include "graph/plan/step_walk.h"
#include "graph/verify/meaning/run_state.h"

namespace mgc {

class CollectiveRuns {
 public:
  // Both must outlive this.
  CollectiveRuns(const ResidueModel& scalars, RunState* state)
      : scalars_(scalars), state_(*state) {}

  void Start(const InstrSite& site);
  // The collective happens: one site a class that takes part.
  void Complete(absl::Span<const InstrSite> sites);
  void Wait(const InstrSite& site);
  // A slice or a lift, which moves nothing between ranks.
  void RunLocal(const InstrSite& site);

 private:
  using SiteKey = std::tuple<const Action*, const Call*, const Instr*>;
  static SiteKey KeyOf(const InstrSite& site) { return {site.action, site.call, site.instr}; }

  absl::StatusOr<CollectiveUse> UseOf(const InstrSite& site, size_t part) const;
  // What operand `part` becomes on the ranks of `sites[s]`.
  Tiles Exchange(absl::Span<const InstrSite> sites, size_t s, size_t part);
  size_t SiteOfClass(absl::Span<const InstrSite> sites, int64_t coordinate) const;
  Tiles SumOverSites(absl::Span<const InstrSite> sites, size_t part);
  void Finish(const InstrSite& site);

  const ResidueModel& scalars_;
  RunState& state_;
  std::map<SiteKey, std::vector<Tiles>> pending_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_RUN_COLLECTIVES_H_
