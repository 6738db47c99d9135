#include "passes/plan/stage/crossings.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

std::map<int, int> StagesByLayer(const LayerPlacement& placement, int num_layers) {
  std::map<int, int> stages;
  for (size_t s = 0; s < placement.stages.size(); ++s) {
    const StageContent& content = placement.stages[s];
    const int stage = static_cast<int>(s);
    if (content.has_embedding) stages[kEmbeddingLayer] = stage;
    for (int64_t i = 0; i < content.num_layers; ++i) {
      stages[static_cast<int>(content.first_layer + i)] = stage;
    }
    if (content.has_head) stages[num_layers] = stage;
  }
  return stages;
}

}  // namespace

Crossings::Crossings(const Parts& parts, const LayerPlacement& placement, const Crossings* trained)
    : parts_(parts),
      graph_(parts.graph()),
      stage_of_(StagesByLayer(placement, graph_.num_layers())),
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
  for (ValueId id : handed) {
    const Node& maker = MakerOf(id);
    if (BytesOf(id) != bytes) continue;
    if (!stream_of_.try_emplace({maker.phase, maker.layer}, id).second) continue;
    kinds_[Index(id)] = Kind::kStream;
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
  MGC_RETURN_IF_ERROR(CheckLayers());
  for (size_t v = 0; v < kinds_.size(); ++v) {
    const ValueId id = static_cast<ValueId>(v);
    if (kinds_[v] == Kind::kKept && LeavesStage(id)) MGC_RETURN_IF_ERROR(CheckKept(id));
  }
  return CheckCuts();
}

absl::Status Crossings::CheckLayers() const {
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

// What crosses a cut and is not of the stream: why not.
absl::Status Crossings::CheckKept(ValueId id) const {
  const Node& maker = MakerOf(id);
  const std::string name = absl::StrCat("%", EscapeBytes(graph_.value(id).name));
  const auto layer = [this](int of) { return NameOfLayer(of, graph_.num_layers()); };
  if (const Node* use = FirstOddUser(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is made in ", NameOf(maker.phase), " of ", layer(maker.layer),
                     " and read in ", NameOf(use->phase), " of ", layer(use->layer),
                     ": across a cut of the pipeline only a neighbour may read it; pp 1 cuts "
                     "nothing [stage_c2]"));
  }
  const auto first = stream_of_.find({maker.phase, maker.layer});
  if (first != stream_of_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("two values cross the cut of the pipeline after ", layer(maker.layer), ": %",
                     EscapeBytes(graph_.value(first->second).name), " and ", name,
                     "; pp 1 cuts nothing [stage_c1]"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " crosses a cut of the pipeline with ", BytesOf(id), " bytes on a rank, %",
                   EscapeBytes(graph_.value(stream_).name), " another with ", BytesOf(stream_),
                   ": all must be alike; pp 1 cuts nothing [stage_c5]"));
}

// The stream goes up through every cut in forward and down in backward.
absl::Status Crossings::CheckCuts() const {
  const std::vector<Node>& nodes = graph_.nodes();
  const bool trains = std::any_of(nodes.begin(), nodes.end(),
                                  [](const Node& node) { return node.phase == Phase::kBackward; });
  if (nodes.empty()) return absl::OkStatus();
  for (auto below = stage_of_.begin(); below != stage_of_.end(); ++below) {
    const auto above = std::next(below);
    if (above == stage_of_.end() || above->second == below->second) continue;
    const bool forward = stream_of_.count({Phase::kForward, below->first}) > 0;
    const bool backward = !trains || stream_of_.count({Phase::kBackward, above->first}) > 0;
    if (forward && backward) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "no ", forward ? "gradient" : "value", " crosses the cut of the pipeline between ",
        NameOfLayer(below->first, graph_.num_layers()), " and ",
        NameOfLayer(above->first, graph_.num_layers()),
        forward ? ": no loss trains what is below it" : "", "; pp 1 cuts nothing [stage_c4]"));
  }
  return absl::OkStatus();
}

}  // namespace mgc
