#include "passes/plan/stage/shared_params.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/plan/formal.h"

namespace mgc {

SharedParams::SharedParams(const Parts& parts, const Crossings& crossings,
                           const LayerPlacement& placement)
    : parts_(parts), graph_(parts.graph()), crossings_(crossings), placement_(placement) {
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind != InputKind::kParam || !parts_.IsTied(input.value)) continue;
    Shared& shared = shared_[input.value];
    shared.classes = ClassesOf(LayersOf(input.value));
    shared.block = NewBlock(parts_.HomeLayer(input.value), shared.classes);
  }
}

std::string SharedParams::BlockOf(ValueId param) const {
  const auto found = shared_.find(param);
  return found == shared_.end() ? "" : found->second.block;
}

// One block for all parameters of a layer that the same classes hold.
std::string SharedParams::NewBlock(int layer, const std::vector<int>& classes) {
  const std::string kind =
      layer == kEmbeddingLayer ? kTiedBlock : absl::StrCat(kTiedBlock, ".", layer);
  std::string name = kind;
  for (int number = 2;; ++number) {
    const auto [block, is_new] = blocks_.try_emplace({layer, name}, classes);
    if (is_new || block->second == classes) return name;
    name = absl::StrCat(kind, layer == kEmbeddingLayer ? ".embedding." : ".", number);
  }
}

std::set<int> SharedParams::LayersOf(ValueId param) const {
  std::set<int> layers;
  for (NodeId user : parts_.users()[static_cast<size_t>(param)]) {
    const Node& node = graph_.node(user);
    if (node.phase != Phase::kUpdate) layers.insert(node.layer);
  }
  return layers;
}

// Where the accumulators of a parameter are.
std::set<int> SharedParams::SummingLayers(ValueId param) const {
  std::set<int> layers;
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind != InputKind::kAccumulator || parts_.ParamOf(input.value) != param) continue;
    layers.insert(parts_.HomeLayer(input.value));
  }
  return layers;
}

// Whether the update adds accumulators as they are, without a collective on one of them.
bool SharedParams::IsSumOfAccumulators(ValueId param) const {
  return std::none_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
    if (node.phase != Phase::kUpdate || !node.op->Has(OpRole::kSum)) return false;
    if (parts_.ParamOf(node.outputs[0]) != param) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const NodeId producer = graph_.value(id).producer;
      return producer != kNone && graph_.node(producer).phase == Phase::kUpdate;
    });
  });
}

int SharedParams::ClassOf(int layer) const {
  return placement_.places[static_cast<size_t>(crossings_.StageOf(layer))].rank_class;
}

std::vector<int> SharedParams::ClassesOf(const std::set<int>& layers) const {
  std::set<int> classes;
  for (int layer : layers) classes.insert(ClassOf(layer));
  return {classes.begin(), classes.end()};
}

std::string SharedParams::Users(ValueId param) const {
  std::vector<std::string> places;
  for (int layer : LayersOf(param)) {
    places.push_back(absl::StrCat(NameOfLayer(layer, graph_.num_layers()), " (stage ",
                                  crossings_.StageOf(layer), ", pipeline rank ", ClassOf(layer),
                                  ")"));
  }
  return absl::StrJoin(places, ", ");
}

absl::Status SharedParams::Check() const {
  Diagnostics violations;
  for (const auto& [param, shared] : shared_) {
    if (shared.classes.size() == 1 || !IsTrained(graph_.FindInput(param)->attrs)) continue;
    std::string why;
    if (ClassesOf(SummingLayers(param)) != shared.classes) {
      why = "not all of these pipeline ranks have a gradient of it to sum";
    } else if (!IsSumOfAccumulators(param)) {
      why = "its gradients are laid out differently there";
    }
    if (why.empty()) continue;
    violations.Add({"stage_c6", absl::StrCat("is used by ", Users(param), ": ", why),
                    "--pp 1, or a --pipeline-layout that puts these layers on one pipeline rank",
                    absl::StrCat("%", EscapeBytes(graph_.value(param).name))});
  }
  return violations.ToStatus();
}

}  // namespace mgc
