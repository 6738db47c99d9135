#include "graph/verify/shrink/small_plans.h"

#include <algorithm>
#include <set>
#include <utility>

#include "graph/base/status.h"
#include "graph/verify/shrink/covering_meshes.h"
#include "graph/verify/shrink/drop_axes.h"

namespace mgc {
namespace {

// Axes that leave a rest of some dim.
AxisSet UnevenAxes(const Plan& plan) {
  AxisSet uneven;
  for (const Segment& segment : plan.segments) {
    for (const Slot& slot : segment.slots) {
      for (size_t d = 0; d < slot.type.dims.size(); ++d) {
        const AxisList& axes = slot.sharding.dims[d];
        if (slot.type.dims[d].size % plan.mesh.Size(axes) != 0) uneven |= axes.AsSet();
      }
    }
  }
  return uneven;
}

// Axes that meet: slots of one segment are laid out or owed over both.
std::vector<std::pair<int, int>> PairsOf(const Plan& plan, const std::vector<AxisId>& axes) {
  std::set<std::pair<int, int>> pairs;
  for (const Segment& segment : plan.segments) {
    AxisSet used;
    for (const Slot& slot : segment.slots) used |= slot.sharding.UsedAxes();
    for (size_t b = 0; b < axes.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (!used.Contains(axes[a]) || !used.Contains(axes[b])) continue;
        pairs.emplace(static_cast<int>(a), static_cast<int>(b));
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

// Sizes that are tried for an axis, the best first.
std::vector<SmallAxis> ChoicesOf(int64_t ranks, bool uneven) {
  constexpr int64_t kMostRanks = 8;  // at its own size
  std::vector<SmallAxis> choices = {{3, 2}, {2, 2}};
  if (uneven) choices.insert(choices.begin(), {4, 2});
  if (ranks > 2 && ranks <= kMostRanks) choices.push_back({ranks, ranks});
  return choices;
}

class Shrinking {
 public:
  Shrinking(const Plan& plan, StepWorkOf work) : plan_(plan), work_(work) {
    const AxisSet uneven = UnevenAxes(plan);
    const AxisId pipeline = PipelineAxis(plan.mesh);
    for (AxisId axis = 0; axis < plan.mesh.num_axes(); ++axis) {
      if (axis == pipeline) continue;
      axes_.push_back(axis);
      choices_.push_back(ChoicesOf(plan.mesh.size(axis), uneven.Contains(axis)));
    }
    pairs_ = PairsOf(plan, axes_);
  }

  // Takes worse sizes for as few axes as it can until all meshes have sizes of dims.
  absl::StatusOr<std::vector<Plan>> Run() {
    for (;;) {
      std::vector<SmallAxis> axes;
      for (const std::vector<SmallAxis>& choices : choices_) axes.push_back(choices[0]);
      std::vector<Plan> plans;
      absl::Status failed;
      for (const std::vector<int64_t>& sizes : CoveringMeshes(axes, pairs_)) {
        absl::StatusOr<Plan> small = On(sizes);
        if (small.ok()) {
          plans.push_back(*std::move(small));
          continue;
        }
        failed = small.status();
        if (!Lower(sizes)) return failed;
        break;
      }
      if (failed.ok()) return plans;
    }
  }

 private:
  // The plan with these many ranks of each axis.
  absl::StatusOr<Plan> On(const std::vector<int64_t>& sizes) const {
    AxisSet dropped;
    std::vector<int64_t> ranks;  // by axis of the plan
    for (const MeshAxis& axis : plan_.mesh.axes()) ranks.push_back(axis.size);
    for (size_t a = 0; a < axes_.size(); ++a) {
      ranks[static_cast<size_t>(axes_[a])] = sizes[a];
      if (sizes[a] == 1) dropped.Add(axes_[a]);
    }
    MGC_ASSIGN_OR_RETURN(const Plan plan, WithoutAxes(plan_, dropped));
    std::vector<MeshAxis> axes = plan.mesh.axes();
    ranks.erase(std::remove(ranks.begin(), ranks.end(), 1), ranks.end());
    for (size_t a = 0; a < axes.size(); ++a) axes[a].size = ranks[a];
    MGC_ASSIGN_OR_RETURN(const Mesh mesh, Mesh::Create(axes));
    return ShrinkPlan(plan, mesh, work_);
  }

  // A worse choice for one axis, if that gives this mesh sizes, or else for all; false when there
  // is none left.
  bool Lower(const std::vector<int64_t>& sizes) {
    bool any = false;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (sizes[a] == 1 || choices_[a].size() == 1) continue;
      any = true;
      std::vector<int64_t> lowered = sizes;
      const bool most = sizes[a] == choices_[a][0].most;
      lowered[a] = most ? choices_[a][1].most : choices_[a][1].least;
      if (!On(lowered).ok()) continue;
      choices_[a].erase(choices_[a].begin());
      return true;
    }
    for (size_t a = 0; a < axes_.size() && any; ++a) {
      if (sizes[a] > 1 && choices_[a].size() > 1) choices_[a].erase(choices_[a].begin());
    }
    return any;
  }

  const Plan& plan_;
  const StepWorkOf work_;
  std::vector<AxisId> axes_;                     // all but pp
  std::vector<std::vector<SmallAxis>> choices_;  // by axis in axes_, the current one first
  std::vector<std::pair<int, int>> pairs_;       // of places in axes_
};

}  // namespace

absl::StatusOr<std::vector<Plan>> SmallPlans(const Plan& plan, StepWorkOf work) {
  return Shrinking(plan, work).Run();
}

}  // namespace mgc
