// What the segments of a plan take, made of a profile instead of a graph: forward and backward of
// layers, and what a profile lacks, gathers of parameters, sums of gradients and the update. These
// are as passes/plan/stage makes them: one of each a layer.

#ifndef MGC_PASSES_SEARCH_PLANS_DRAFT_SEGMENTS_H_
#define MGC_PASSES_SEARCH_PLANS_DRAFT_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "graph/types/machine.h"
#include "graph/types/mesh.h"
#include "passes/plan/time/cost.h"
#include "passes/search/plans/draft_profile.h"
#include "passes/search/plans/plan_spread.h"

namespace mgc {

// The segments of layers that are alike; -1: they have none of it.
struct LayerSegments {
  int forward = -1;
  int backward = -1;
  int prepare = -1;
  int gather = -1;   // in turn
  int reduce = -1;   // behind the last backward, or in turn
  int collect = -1;  // in turn
  int pieces = -1;   // behind the last backward, of what was summed in turn
  // Of pieces of gradients: in `pieces`, or in the update.
  std::vector<TimedStep> sums;
};

class SegmentDrafter {
 public:
  // All outlive it. `spread` is of the draft's profile.
  SegmentDrafter(const DraftProfile& draft, const PlanSpread& spread, const Machine& machine);

  const Mesh& mesh() const { return mesh_; }
  // Whether layers gather parameters, and sum gradients, for themselves.
  bool gathers_in_turn() const { return is_cut_ && spread_.GathersInTurn(); }
  bool sums_in_turn() const { return is_cut_ && spread_.config.zero >= 2; }
  // Whether copies for the whole step are gathered before the first forward.
  bool gathers_ahead() const {
    return is_cut_ && spread_.config.zero > 0 && !spread_.GathersInTurn();
  }

  // Of a layer, in the profile's numbers.
  const LayerSegments& Of(size_t layer);
  // Of a pipeline rank and its layers: the loss, sums of pieces, the norm, and the optimizer's
  // steps.
  int AddUpdate(size_t rank, const std::vector<size_t>& layers);

  TimedSegments Take() && { return std::move(segments_); }

 private:
  int Add(std::vector<TimedStep> steps);
  int AddStarts(std::vector<TimedStep> starts);
  // So many ops, whose work is cut as parameters are; one pass over memory.
  int64_t OpsNs(int64_t ops, int64_t work_ns) const;
  int64_t PassNs(int64_t bytes) const;
  TimedStep Start(AxisSet axes, CollectiveKind kind, int64_t bytes, bool background) const;
  // Of a start over axes of the profile's mesh.
  AxisSet InMesh(AxisSet of_profile) const;
  std::vector<TimedStep> Retimed(const LayerSteps& of) const;

  void AddCopies(const LayerDraft& of, LayerSegments* made);
  void AddSums(const LayerProfile& of, const LayerCalls& calls, int64_t tied, LayerSegments* made);
  bool HasTied() const;
  int64_t TiedBytes() const;
  std::vector<TimedStep> TiedSums() const;

  const DraftProfile& draft_;
  const PlanSpread& spread_;
  const Machine& machine_;
  const Mesh mesh_;
  const CostModel costs_;
  AxisSet near_;         // whose ranks share the pieces of a parameter, or sum its gradients
  AxisSet far_;          // along which pieces have copies
  bool is_cut_ = false;  // near_ has ranks
  TimedSegments segments_;
  std::map<const LayerCalls*, LayerSegments> known_;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_DRAFT_SEGMENTS_H_
