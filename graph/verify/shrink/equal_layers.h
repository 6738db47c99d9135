// Which layers of a model are the same but for their number.
//
// A layer repeats the one before it when it has the same nodes with the same attributes (texts as
// patterns, graph/types/layer_names.h) over values of the same types, parameters of its own that
// start alike, reads of the layer before it what that one reads of the one before, and everything
// else that it reads is the very same value. A layer that makes an output of the model, or
// something that others than itself and the next layer read, repeats nothing and is not repeated.

#ifndef MGC_GRAPH_VERIFY_SHRINK_EQUAL_LAYERS_H_
#define MGC_GRAPH_VERIFY_SHRINK_EQUAL_LAYERS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/ir/graph.h"
#include "graph/verify/shrink/layer_gaps.h"

namespace mgc {

class EqualLayers {
 public:
  // `model` is logical and must outlive this.
  explicit EqualLayers(const Graph& model);

  // Whether layer `layer` repeats layer `layer - 1`.
  bool Repeats(int layer) const { return IsLayer(layer) && At(layer).repeats; }
  // Whether a parameter is read by layer `layer` and by nothing else.
  bool Owns(int layer, ValueId param) const;
  // The model without the layers of `gaps`: what comes behind a gap reads what comes before it.
  // Those of a gap and the one behind it repeat the one before them.
  Graph WithoutLayers(const std::vector<LayerGap>& gaps) const;

 private:
  struct Layer {
    bool alone = false;
    bool repeats = false;
    std::string text;           // all but which values of others it reads
    std::vector<ValueId> read;  // of others, in the order of their first uses
    std::vector<ValueId> made;  // in the order of nodes
  };

  bool IsLayer(int layer) const { return layer >= 0 && layer < static_cast<int>(layers_.size()); }
  Layer& At(int layer) { return layers_[static_cast<size_t>(layer)]; }
  const Layer& At(int layer) const { return layers_[static_cast<size_t>(layer)]; }
  void FindOwnersAndAlone();
  void AddNode(const Node& node);
  void AddOperand(ValueId value, int layer);
  bool IsRepeated(int layer) const;
  // Its place among what its layer makes.
  size_t PlaceOf(ValueId value) const { return places_[static_cast<size_t>(value)]; }
  // Whether the two layers make these values, at the same place.
  bool IsSamePlace(ValueId value, int layer, ValueId other, int other_layer) const;
  // By layer: the one before the gap that it lies in, or kNoLayer.
  std::vector<int> LayersBeforeGaps(const std::vector<LayerGap>& gaps) const;
  int LayerOfProducer(ValueId value) const;

  const Graph& model_;
  std::vector<Layer> layers_;
  std::vector<int> owners_;     // by value: the layer that alone reads this parameter, or kNoLayer
  std::vector<size_t> places_;  // by value: in Layer::made
  // By layer and value: its number among the parameters, or the values of others, that it reads.
  absl::flat_hash_map<std::pair<int, ValueId>, size_t> numbers_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_EQUAL_LAYERS_H_
