// Where along a pipeline a model lies: embedding, layers, head.

#ifndef MGC_GRAPH_IR_MODEL_LAYERS_H_
#define MGC_GRAPH_IR_MODEL_LAYERS_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"

namespace mgc {

// What the forward nodes of a graph name. A graph without layers, or without a node that is in one,
// names none: then it has no embedding and no head either.
ModelLayers LayersOf(const Graph& graph);

// The dims of a model, its layers taken from its graph: one where the graph names none.
ModelDims WithLayersOf(const Graph& graph, ModelDims dims);

// `embedding`, `layer` or `head`.
std::string LayerKind(int layer, int num_layers);
// What others than a layer's own calls call its memory in a plan: `embedding`, `head` or its
// number.
std::string BlockOfLayer(int layer, int num_layers);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_MODEL_LAYERS_H_
