#include "graph/ir/model_layers.h"

#include "absl/strings/str_cat.h"

namespace mgc {

ModelLayers LayersOf(const Graph& graph) {
  ModelLayers layers{false, false, false};
  if (graph.num_layers() == 0) return layers;
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::kForward || node.layer == kNoLayer) continue;
    layers.named = true;
    layers.embedding = layers.embedding || node.layer == kEmbeddingLayer;
    layers.head = layers.head || node.layer == graph.num_layers();
  }
  return layers;
}

ModelDims WithLayersOf(const Graph& graph, ModelDims dims) {
  dims.places = LayersOf(graph);
  dims.layers = dims.places.named ? graph.num_layers() : 1;
  return dims;
}

std::string LayerKind(int layer, int num_layers) {
  if (layer == kEmbeddingLayer) return "embedding";
  return layer == num_layers ? "head" : "layer";
}

std::string BlockOfLayer(int layer, int num_layers) {
  const bool is_end = layer == kEmbeddingLayer || layer == num_layers;
  return is_end ? LayerKind(layer, num_layers) : absl::StrCat(layer);
}

}  // namespace mgc
