#include "passes/plan/stage/check_fold.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/file.h"
#include "graph/ir/step_vector.h"
#include "graph/types/layer_names.h"

namespace mgc {
namespace {

bool IsNumber(absl::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
}

// Whether a word of a layer stays the same pattern when the layer gets another number: behind its
// prefix no other layer is named; without one, the first number is the layer's.
bool FollowsLayer(absl::string_view word, int layer) {
  constexpr absl::string_view kLayers = "layers.";
  const std::string prefix = LayerPrefix(layer);
  if (absl::StrContains(word, prefix)) {
    for (size_t at = word.find(kLayers); at != absl::string_view::npos;
         at = word.find(kLayers, at + 1)) {
      if (!absl::StartsWith(word.substr(at), prefix)) return false;
    }
    return true;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(word, '.');
  const auto first = std::find_if(parts.begin(), parts.end(), IsNumber);
  return first == parts.end() || parts.size() == 1 || *first == absl::StrCat(layer);
}

class Checker {
 public:
  Checker(const Parts& parts, const Crossings& crossings, const LayerMap& layers)
      : parts_(parts), graph_(parts.graph()), crossings_(crossings), layers_(layers) {}

  absl::Status Run() {
    for (const GraphInput& input : graph_.inputs()) CheckInput(input);
    for (const Node& node : graph_.nodes()) {
      CheckNode(node);
      if (PacksStepVector(node)) CheckVector(node);
    }
    CheckStream();
    return status_;
  }

 private:
  bool IsInner(int layer) const { return layer >= 0 && layer < layers_.num_kept(); }

  void Refuse(ValueId id, absl::string_view why) {
    status_.Update(absl::FailedPreconditionError(
        absl::StrCat("%", EscapeBytes(graph_.value(id).name), " ", why)));
  }

  void CheckText(ValueId id, absl::string_view text, int layer) {
    for (const absl::string_view word : absl::StrSplit(text, ' ')) {
      if (!FollowsLayer(word, layer)) Refuse(id, absl::StrCat("is said of `", word, "`"));
    }
  }

  void CheckInput(const GraphInput& input) {
    const int layer = parts_.HomeLayer(input.value);
    if (IsInner(layer)) CheckText(input.value, graph_.value(input.value).name, layer);
    const ValueId param = parts_.ParamOf(input.value);
    if (param != kNone && parts_.IsTied(param) && IsInner(layer)) {
      Refuse(input.value, "is of several layers");
    }
  }

  void CheckNode(const Node& node) {
    for (const ValueId id : node.outputs) {
      if (crossings_.IsKept(id)) Refuse(id, "is read in other layers than the next");
      if (!IsInner(node.layer)) continue;
      if (!GoesByFormal(id)) CheckText(id, graph_.value(id).name, node.layer);
      if (crossings_.IsStream(id)) streams_[{node.phase, node.layer}] = id;
    }
    if (!IsInner(node.layer)) return;
    CheckText(node.outputs[0], node.origin, node.layer);
    for (const Attrs::Entry& entry : node.attrs) {
      const std::string* text = std::get_if<std::string>(&entry.second);
      if (text != nullptr) CheckText(node.outputs[0], *text, node.layer);
    }
  }

  // Whether segments name it by the boundary where it lies.
  bool GoesByFormal(ValueId id) const {
    const ValueId primal = graph_.value(id).primal;
    return crossings_.IsStream(id) || (primal != kNone && crossings_.IsStream(primal));
  }

  void CheckVector(const Node& node) {
    int last = kNoLayer;
    bool has_left = false;  // inner layers behind it
    for (const ValueId id : node.inputs) {
      const ValueId param = parts_.ParamOf(id);
      const int layer = param == kNone ? kNoLayer : parts_.HomeLayer(param);
      const bool is_new = layer != last && IsInner(layer);
      has_left = has_left || (IsInner(last) && !IsInner(layer));
      if (is_new && (has_left || !in_vector_.insert(layer).second)) {
        Refuse(id, "lies apart in the norm's vector");
      }
      last = layer;
    }
  }

  // Upwards a layer takes what the one before it leaves, downwards what the one behind it does.
  void CheckStream() {
    for (int layer = 1; layer + 1 < layers_.num_kept(); ++layer) {
      if (layers_.CountOf(layer) == 1) continue;
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        const auto leaves = streams_.find({phase, layer});
        const int from = phase == Phase::kForward ? layer - 1 : layer + 1;
        const auto takes = streams_.find({phase, from});
        const bool none = leaves == streams_.end() && takes == streams_.end();
        if (none) continue;
        if (leaves == streams_.end() || takes == streams_.end()) {
          const ValueId id = leaves == streams_.end() ? takes->second : leaves->second;
          Refuse(id, "has no counterpart in the next layer");
        } else if (!AreAlike(takes->second, leaves->second)) {
          Refuse(leaves->second, "has another form than what its layer takes");
        }
      }
    }
  }

  bool AreAlike(ValueId a, ValueId b) const {
    return graph_.type(a) == graph_.type(b) && graph_.sharding(a) == graph_.sharding(b);
  }

  const Parts& parts_;
  const Graph& graph_;
  const Crossings& crossings_;
  const LayerMap& layers_;
  std::map<std::pair<Phase, int>, ValueId> streams_;  // what a layer leaves
  std::set<int> in_vector_;                           // layers that have entries
  absl::Status status_;
};

}  // namespace

absl::Status CheckFold(const Parts& parts, const Crossings& crossings, const LayerMap& layers) {
  return Checker(parts, crossings, layers).Run();
}

absl::Status CheckNeighbours(const SegmentCache& segments, const LayerMap& layers) {
  std::map<Part, std::set<int>> made;  // by part, in whatever class
  for (const auto& [held, of_class] : segments) {
    for (const auto& [part, segment] : of_class) made[part].insert(segment);
  }
  for (const auto& [part, numbers] : made) {
    if (layers.CountOf(part.layer) == 1) continue;
    const auto is_like = [&made, &part, &numbers](int layer) {
      const auto other = made.find({part.phase, part.number, layer});
      return layer != part.layer && other != made.end() && other->second == numbers;
    };
    const std::vector<int> of_kind = layers.OfItsKind(part.layer);
    if (std::any_of(of_kind.begin(), of_kind.end(), is_like)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "layer ", part.layer, " is in ", NameOf(part.phase), " like no other of its kind"));
  }
  return absl::OkStatus();
}

}  // namespace mgc
