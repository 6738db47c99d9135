// Which layers of a chunk are called alike: the same segments, bound to memory of the layer in the
// same way.
//
// What two such layers are bound to differs by what belongs to a layer and by nothing else: their
// own blocks; frames and entries of the norm, which follow each other at equal steps; what they
// take in turn, each the place of the next but one; and the links to their neighbours, each of
// which is read where the neighbour writes it.

#ifndef MGC_GRAPH_VERIFY_SHRINK_EQUAL_CALLS_H_
#define MGC_GRAPH_VERIFY_SHRINK_EQUAL_CALLS_H_

#include <array>
#include <cstddef>
#include <vector>

#include "graph/plan/plan.h"
#include "graph/verify/shrink/equal_layers.h"

namespace mgc {

class EqualCalls {
 public:
  // The layers of chunk number `chunk` of `rank_class`. All three outlive this.
  EqualCalls(const Plan& plan, const PlanClass& rank_class, size_t chunk,
             const EqualLayers& layers);

  // By layer of the chunk: whether it repeats the one before, in the model and in every list.
  std::vector<bool> Repeats() const;

 private:
  // The lists of a chunk and the update, of training and of evaluation.
  static constexpr size_t kLists = 2 * (kNumChunkLists + 1);
  // The calls for one layer.
  struct Layer {
    std::array<std::vector<const Call*>, kLists> lists;
    const HeldBlock* own = nullptr;  // the block of its parameters, if it has some
    bool holds_more = false;
  };

  void AddCalls(const std::vector<Call>& calls, size_t list);
  void AddBlocks();
  bool IsOfChunk(int layer) const {
    return layer >= chunk_.first_layer && layer < chunk_.first_layer + chunk_.num_layers;
  }
  Layer& At(int layer) { return layers_[static_cast<size_t>(layer - chunk_.first_layer)]; }
  const Layer& At(int layer) const {
    return layers_[static_cast<size_t>(layer - chunk_.first_layer)];
  }

  // `known`: the layer before `layer` repeats the one before it.
  bool IsRepeated(int layer, bool known) const;
  bool IsLinkedByOne(const Layer& layer, size_t list) const;
  bool HasSameBlock(int layer) const;
  bool IsBoundAlike(int layer, size_t list, size_t call, bool known) const;
  bool IsBoundAlike(int layer, size_t list, size_t call, size_t formal, bool known) const;
  bool IsLinked(int layer, size_t list, Region region) const;
  // The binding of the first formal of a region in the only call of a list, or null.
  const Binding* BindingOf(int layer, size_t list, Region region) const;

  const Plan& plan_;
  const PlanClass& class_;
  const Chunk& chunk_;
  const EqualLayers& model_;
  std::vector<Layer> layers_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_SHRINK_EQUAL_CALLS_H_
