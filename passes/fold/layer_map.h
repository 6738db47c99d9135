// The layers of a model, and those of a folded one that stand for them.
//
//   layer    0  1  2  3  4  5  6  head
//   kept     0  1  1  1  1  1  2  head     the first two and the last of equal layers
//
//   layer    0  1  2  3  4  5  6  7  8  9  head
//   kept     0  1  2  3  2  1  2  1  4  5  head     layers of two kinds that take turns

#ifndef MGC_PASSES_FOLD_LAYER_MAP_H_
#define MGC_PASSES_FOLD_LAYER_MAP_H_

#include <cstddef>
#include <vector>

namespace mgc {

class LayerMap {
 public:
  // Nothing is folded: each of `num_layers` layers stands for itself.
  explicit LayerMap(int num_layers);
  // `kept`, by layer: numbers come up in ascending order, none is left out. `kinds`, by kept layer:
  // equal for those of a kind. `one_place`: nodes of a kept layer have the source locations of all
  // that it stands for.
  LayerMap(std::vector<int> kept, std::vector<int> kinds, bool one_place);

  // Of the model.
  int num_layers() const { return static_cast<int>(kept_.size()); }
  // Of the folded graph.
  int num_kept() const { return static_cast<int>(first_.size()); }
  bool folds() const { return num_kept() < num_layers(); }
  // Whether what is made of a kept layer has the source locations of `layer`.
  bool HasPlaceOf(int layer) const { return one_place_ || FirstOf(KeptFor(layer)) == layer; }

  // What stands for a layer of the model: for embedding, head and kNoLayer the same.
  int KeptFor(int layer) const;
  // The first layer that a kept one stands for.
  int FirstOf(int kept) const;
  // How many layers a kept one stands for.
  int CountOf(int kept) const;
  // The kept layers of its kind, ascending; of an end of the model itself alone.
  std::vector<int> OfItsKind(int kept) const;

 private:
  std::vector<int> kept_;   // by layer
  std::vector<int> first_;  // by kept layer
  std::vector<int> count_;  // likewise
  std::vector<int> kinds_;  // likewise
  bool one_place_ = true;
};

}  // namespace mgc

#endif  // MGC_PASSES_FOLD_LAYER_MAP_H_
