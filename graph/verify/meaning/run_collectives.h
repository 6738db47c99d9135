// Collectives of a run: between the start of one and the wait, of its segment or of a later call,
// its operands and then its results are kept here, and its result slots hold nothing.

#ifndef MGC_GRAPH_VERIFY_MEANING_RUN_COLLECTIVES_H_
#define MGC_GRAPH_VERIFY_MEANING_RUN_COLLECTIVES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
      : scalars_(scalars),
        state_(*state),
        started_(state->plan().classes.size(), 0),
        running_(state->plan().classes.size()) {}

  void Start(const InstrSite& site);
  // The collective happens: one site a class that takes part.
  void Complete(absl::Span<const InstrSite> sites);
  void Wait(const InstrSite& site);
  // A call that waits for collectives of calls before it begins.
  void Await(const InstrSite& site);
  // A slice or a lift, which moves nothing between ranks.
  void RunLocal(const InstrSite& site);

 private:
  using SiteKey = std::tuple<const Action*, const Call*, const Instr*>;
  static SiteKey KeyOf(const InstrSite& site) { return {site.action, site.call, site.instr}; }

  absl::StatusOr<CollectiveUse> UseOf(const InstrSite& site, size_t part) const;
  // What groups make whole of one operand, by the instruction that a class runs and the group's
  // lowest rank. A group's tensor follows from the operands of its members and from how that
  // instruction lays them out, and from nothing else: its members share it, in classes that run the
  // same instruction too. Each by itself would add up all the others' operands.
  using GroupTensors = absl::flat_hash_map<std::pair<const Instr*, int64_t>, ResidueTensor>;

  // What operand `part` becomes on the ranks of `sites[s]`. `groups` are those of the part so far.
  Tiles Exchange(absl::Span<const InstrSite> sites, size_t s, size_t part, GroupTensors* groups);
  size_t SiteOfClass(absl::Span<const InstrSite> sites, int64_t coordinate) const;
  Tiles SumOverSites(absl::Span<const InstrSite> sites, size_t part);
  void Finish(const InstrSite& site);

  // In the background.
  struct Running {
    InstrSite site;
    int64_t start = 0;  // in the background: their starts before it
  };

  const ResidueModel& scalars_;
  RunState& state_;
  std::map<SiteKey, std::vector<Tiles>> pending_;
  std::vector<int64_t> started_;              // by class
  std::vector<std::deque<Running>> running_;  // likewise, in order of start
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_RUN_COLLECTIVES_H_
