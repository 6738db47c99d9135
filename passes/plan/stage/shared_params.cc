#include "passes/plan/stage/shared_params.h"

#include "absl/strings/str_cat.h"
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

int SharedParams::ClassOf(int layer) const {
  return placement_.places[static_cast<size_t>(crossings_.StageOf(layer))].rank_class;
}

std::vector<int> SharedParams::ClassesOf(const std::set<int>& layers) const {
  std::set<int> classes;
  for (int layer : layers) classes.insert(ClassOf(layer));
  return {classes.begin(), classes.end()};
}

}  // namespace mgc
