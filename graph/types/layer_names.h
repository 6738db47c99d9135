// Names that carry the number of a layer, `layers.3.mlp.up` or `h.3.c_attn`, and the patterns that
// stand for those of all equal layers, `layers.*.mlp.up` and `h.*.c_attn`.
//
// In a pattern a `*` stands for the layer's number, and two of them for one of the name's own.

#ifndef MGC_GRAPH_TYPES_LAYER_NAMES_H_
#define MGC_GRAPH_TYPES_LAYER_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace mgc {

// `layers.3`, under which a builder names what is in layer 3.
std::string LayerScope(int layer);
// `layers.3.`
std::string LayerPrefix(int layer);

// The pattern of a name, or of each word of a text, seen from layer `layer`; embedding and head (-1
// and num_layers) have no number. The number is what stands behind `layers`, else the first part
// between dots that is it. NameForLayer(FoldName(name, layer, n), layer) is the name.
std::string FoldName(absl::string_view name, int layer, int num_layers);

// The name that a pattern stands for in a layer.
std::string NameForLayer(absl::string_view pattern, int layer);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_LAYER_NAMES_H_
