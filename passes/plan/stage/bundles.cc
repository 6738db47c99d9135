#include "passes/plan/stage/bundles.h"

#include <algorithm>

#include "graph/base/status.h"
#include "graph/plan/plan.h"

namespace mgc {

Bundles::Bundles(const Parts& parts, const Crossings& crossings, const LayerMap& layers,
                 int num_stages)
    : parts_(parts),
      graph_(parts.graph()),
      crossings_(crossings),
      forward_(static_cast<size_t>(num_stages)),
      backward_(static_cast<size_t>(num_stages)) {
  if (layers.folds()) return;
  for (size_t v = 0; v < graph_.values().size(); ++v) Add(static_cast<ValueId>(v), num_stages);
  for (Bundle& bundle : forward_) Place(&bundle);
  for (Bundle& bundle : backward_) Place(&bundle);
}

// Forward upwards to the last reader, backward downwards to the first.
void Bundles::Add(ValueId id, int num_stages) {
  if (!crossings_.IsStream(id) && !crossings_.IsKept(id)) return;
  const bool forward = crossings_.MakerOf(id).phase == Phase::kForward;
  const int made = crossings_.StageOf(crossings_.MakerOf(id).layer);
  int end = made;
  for (NodeId user : parts_.users()[static_cast<size_t>(id)]) {
    const Node& use = graph_.node(user);
    if (use.phase == Phase::kUpdate) continue;
    const int stage = crossings_.StageOf(use.layer);
    end = forward ? std::max(end, stage) : std::min(end, stage);
  }
  MGC_CHECK(end >= 0 && end < num_stages) << "a value is read in stage " << end;
  for (int s = made; s != end; s += forward ? 1 : -1) {
    (forward ? forward_ : backward_)[static_cast<size_t>(s)].emplace_back(id, 0);
  }
}

void Bundles::Place(Bundle* bundle) const {
  std::stable_partition(bundle->begin(), bundle->end(),
                        [this](const auto& entry) { return crossings_.IsStream(entry.first); });
  int64_t end = 0;
  for (auto& [id, offset] : *bundle) {
    offset = end;
    end = AlignUp(end + crossings_.BytesOf(id));
  }
}

bool Bundles::IsLeft(ValueId id, int stage) const {
  const Bundle& bundle = LeftBy(stage, crossings_.MakerOf(id).phase);
  return std::any_of(bundle.begin(), bundle.end(),
                     [id](const auto& entry) { return entry.first == id; });
}

bool Bundles::IsReadInBackward(ValueId id, int stage) const {
  const std::vector<NodeId>& users = parts_.users()[static_cast<size_t>(id)];
  return std::any_of(users.begin(), users.end(), [&](NodeId user) {
    const Node& use = graph_.node(user);
    return use.phase == Phase::kBackward && crossings_.StageOf(use.layer) == stage;
  });
}

ValuePlace Bundles::PlaceAt(Region region, ValueId id, int left_by) const {
  const Bundle& bundle = LeftBy(left_by, crossings_.MakerOf(id).phase);
  const auto found = std::find_if(bundle.begin(), bundle.end(),
                                  [id](const auto& entry) { return entry.first == id; });
  MGC_CHECK(found != bundle.end()) << "stage " << left_by << " does not leave the value";
  return {{region, crossings_.IsStream(id) ? "" : kSharedFrame}, found->second};
}

ValuePlace Bundles::PlaceLeft(ValueId id, int stage) const {
  const bool forward = crossings_.MakerOf(id).phase == Phase::kForward;
  return PlaceAt(forward ? Region::kOutput : Region::kGradOutput, id, stage);
}

absl::optional<ValuePlace> Bundles::PlaceIn(ValueId id, int stage) const {
  const Node& maker = crossings_.MakerOf(id);
  const bool forward = maker.phase == Phase::kForward;
  if (crossings_.StageOf(maker.layer) != stage) {
    return PlaceAt(forward ? Region::kInput : Region::kGradInput, id,
                   forward ? stage - 1 : stage + 1);
  }
  const bool in_frame = forward && IsReadInBackward(id, stage);
  if (in_frame || !IsLeft(id, stage)) return absl::nullopt;
  return PlaceLeft(id, stage);
}

std::vector<ValueId> Bundles::HandedOn(int stage, Phase phase) const {
  std::vector<ValueId> values;
  for (const auto& [id, offset] : LeftBy(stage, phase)) {
    const bool made_here = crossings_.StageOf(crossings_.MakerOf(id).layer) == stage;
    const bool in_place = made_here && (crossings_.IsStream(id) || PlaceIn(id, stage).has_value());
    if (!in_place) values.push_back(id);
  }
  return values;
}

}  // namespace mgc
