#include "passes/plan/stage/shared_params.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

class SharedCheck {
 public:
  SharedCheck(const Parts& parts, const Crossings& crossings, const LayerPlacement& placement)
      : parts_(parts),
        graph_(parts.graph()),
        crossings_(crossings),
        placement_(placement),
        ends_{placement.places.front().rank_class, placement.places.back().rank_class} {}

  absl::Status Run() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind == InputKind::kParam && parts_.IsTied(input.value)) Check(input.value);
    }
    return violations_.ToStatus();
  }

 private:
  void Check(ValueId param) {
    std::set<int> layers;
    for (NodeId user : parts_.users()[static_cast<size_t>(param)]) AddLayer(user, &layers);
    const std::set<int> holders = ClassesOf(layers);
    if (holders.size() == 1) return;
    if (holders != ends_) {
      Refuse(param, layers,
             absl::StrCat("its gradient is summed inside one pipeline rank, or over those of the "
                          "first and the last stage, ",
                          absl::StrJoin(ends_, " and ")));
    } else if (ClassesOf(SummingLayers(param)) != holders) {
      Refuse(param, layers, "not all of these pipeline ranks have a gradient of it to sum");
    } else if (!IsSumOfAccumulators(param)) {
      Refuse(param, layers, "its gradients are laid out differently there");
    }
  }

  void AddLayer(NodeId user, std::set<int>* layers) const {
    const Node& node = graph_.node(user);
    if (node.phase != Phase::kUpdate) layers->insert(node.layer);
  }

  // Where the accumulators of a parameter are.
  std::set<int> SummingLayers(ValueId param) const {
    std::set<int> layers;
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kAccumulator || parts_.ParamOf(input.value) != param) continue;
      layers.insert(parts_.HomeLayer(input.value));
    }
    return layers;
  }

  // Whether the update adds accumulators as they are, without a collective on one of them.
  bool IsSumOfAccumulators(ValueId param) const {
    return std::none_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
      if (node.phase != Phase::kUpdate || !node.op->Has(OpRole::kSum)) return false;
      if (parts_.ParamOf(node.outputs[0]) != param) return false;
      return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
        const NodeId producer = graph_.value(id).producer;
        return producer != kNone && graph_.node(producer).phase == Phase::kUpdate;
      });
    });
  }

  int ClassOf(int layer) const {
    return placement_.places[static_cast<size_t>(crossings_.StageOf(layer))].rank_class;
  }
  std::set<int> ClassesOf(const std::set<int>& layers) const {
    std::set<int> classes;
    for (int layer : layers) classes.insert(ClassOf(layer));
    return classes;
  }

  void Refuse(ValueId param, const std::set<int>& layers, const std::string& why) {
    std::vector<std::string> places;
    places.reserve(layers.size());
    for (int layer : layers) {
      places.push_back(absl::StrCat(NameOfLayer(layer, graph_.num_layers()), " (stage ",
                                    crossings_.StageOf(layer), ", pipeline rank ", ClassOf(layer),
                                    ")"));
    }
    violations_.Add({"stage_c6",
                     absl::StrCat("is used by ", absl::StrJoin(places, ", "), ": ", why),
                     "--pp 1, or a --pipeline-layout that puts these layers on one pipeline rank",
                     absl::StrCat("%", EscapeBytes(graph_.value(param).name))});
  }

  const Parts& parts_;
  const Graph& graph_;
  const Crossings& crossings_;
  const LayerPlacement& placement_;
  const std::set<int> ends_;  // classes of the first and the last stage
  Diagnostics violations_;
};

}  // namespace

absl::Status CheckShared(const Parts& parts, const Crossings& crossings,
                         const LayerPlacement& placement) {
  return SharedCheck(parts, crossings, placement).Run();
}

}  // namespace mgc
