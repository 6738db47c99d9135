#include "passes/plan/stage/crossings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"

namespace mgc {

std::map<int, int> StagesByLayer(const LayerPlacement& placement, const LayerMap& layers) {
  std::map<int, int> stages;
  for (size_t s = 0; s < placement.stages.size(); ++s) {
    const StageContent& content = placement.stages[s];
    const int stage = static_cast<int>(s);
    if (content.has_embedding) stages[kEmbeddingLayer] = stage;
    for (int64_t i = 0; i < content.num_layers; ++i) {
      stages.try_emplace(layers.KeptFor(static_cast<int>(content.first_layer + i)), stage);
    }
    if (content.has_head) stages[layers.num_kept()] = stage;
  }
  return stages;
}

Crossings::Crossings(const Parts& parts, const LayerPlacement& placement, const LayerMap& layers,
                     const Crossings* trained)
    : parts_(parts),
      graph_(parts.graph()),
      stage_of_(StagesByLayer(placement, layers)),
      kinds_(graph_.values().size(), Kind::kInLayer) {
  std::vector<ValueId> handed;  // to the neighbour alone
  for (size_t v = 0; v < kinds_.size(); ++v) {
    const ValueId id = static_cast<ValueId>(v);
    if (!LeavesLayer(id)) continue;
    kinds_[v] = Kind::kKept;
    if (FirstOddUser(id) == nullptr) handed.push_back(id);
  }
  if (handed.empty()) return;
  const auto cut =
      std::find_if(handed.begin(), handed.end(), [this](ValueId id) { return LeavesStage(id); });
  stream_ = cut == handed.end() ? handed.front() : *cut;
  const bool is_given = trained != nullptr && trained->stream_ != kNone;
  const int64_t bytes = is_given ? trained->BytesOf(trained->stream_) : BytesOf(stream_);
  std::set<std::pair<Phase, int>> handing;  // layers that have their one value
  for (ValueId id : handed) {
    const Node& maker = MakerOf(id);
    const bool is_stream =
        BytesOf(id) == bytes && handing.insert({maker.phase, maker.layer}).second;
    if (is_stream) kinds_[Index(id)] = Kind::kStream;
  }
}

int Crossings::StageOf(int layer) const {
  const auto it = stage_of_.find(layer);
  return it == stage_of_.end() ? 0 : it->second;
}

int64_t Crossings::BytesOf(ValueId id) const {
  return NumElements(graph_.local_shape(id)) * SizeOf(graph_.type(id).dtype);
}

const Node& Crossings::MakerOf(ValueId id) const { return graph_.node(graph_.value(id).producer); }

bool Crossings::LeavesLayer(ValueId id) const {
  if (graph_.value(id).producer == kNone || MakerOf(id).phase == Phase::kUpdate) return false;
  const std::vector<NodeId>& users = parts_.users()[Index(id)];
  return std::any_of(users.begin(), users.end(), [&](NodeId user) {
    const Node& use = graph_.node(user);
    return use.phase != Phase::kUpdate && use.layer != MakerOf(id).layer;
  });
}

bool Crossings::LeavesStage(ValueId id) const {
  const std::vector<NodeId>& users = parts_.users()[Index(id)];
  return std::any_of(users.begin(), users.end(), [&](NodeId user) {
    const Node& use = graph_.node(user);
    return use.phase != Phase::kUpdate && StageOf(use.layer) != StageOf(MakerOf(id).layer);
  });
}

// The first that is neither beside the maker, in its layer and phase, nor in the neighbouring
// layer, from the maker's phase on.
const Node* Crossings::FirstOddUser(ValueId id) const {
  const Node& maker = MakerOf(id);
  const int step = maker.phase == Phase::kForward ? 1 : -1;
  for (NodeId user : parts_.users()[Index(id)]) {
    const Node& use = graph_.node(user);
    if (use.layer == maker.layer && use.phase == maker.phase) continue;
    if (use.layer == maker.layer + step && use.phase >= maker.phase) continue;
    return &use;
  }
  return nullptr;
}

absl::Status Crossings::Check() const {
  const int head = graph_.num_layers();
  for (const Node& node : graph_.nodes()) {
    if (node.phase == Phase::kUpdate || (node.layer >= kEmbeddingLayer && node.layer <= head)) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("%", EscapeBytes(graph_.value(node.outputs[0]).name),
                     " belongs to no layer, while other nodes do [stage_c3]"));
  }
  return absl::OkStatus();
}

}  // namespace mgc
