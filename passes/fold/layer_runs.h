// Which layers of a logical graph are equal (passes/fold/fold_model.h says what that is).

#ifndef MGC_PASSES_FOLD_LAYER_RUNS_H_
#define MGC_PASSES_FOLD_LAYER_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"

namespace mgc {

// Layers `first` to `last` of a graph.
struct LayerRun {
  int first = 0;
  int last = 0;
  bool one_place = true;  // all from the same source locations
};

class LayerRuns {
 public:
  // `model` outlives this.
  explicit LayerRuns(const Graph& model);

  // Whether the graph lies layer by layer, each joined to the next by one value at most.
  bool IsLayered() const { return is_layered_; }
  // The longest runs of equal layers, ascending; a layer without an equal neighbour is one. For a
  // graph that is layered.
  std::vector<LayerRun> Runs() const;
  // The layer that makes a value or, of a parameter, reads it; kNoLayer where several do, none
  // does, or it is data.
  int LayerOf(ValueId id) const { return home(id).layer; }
  // What the layer behind reads of an inner layer; kNone where it reads nothing.
  ValueId HandedBy(int layer) const { return at(layer).handed; }

 private:
  struct Home {
    int layer = kNoLayer;
    int number = 0;  // among the layer's results, or its parameters
  };
  // In program order.
  struct Contents {
    std::vector<NodeId> nodes;
    std::vector<ValueId> params;
    int num_results = 0;
    ValueId handed = kNone;  // what the next layer reads
    bool has_output = false;
  };

  const Home& home(ValueId id) const { return homes_[static_cast<size_t>(id)]; }
  // Of an inner layer or, at -1, the embedding.
  Contents& at(int layer) { return contents_[static_cast<size_t>(int64_t{layer} + 1)]; }
  const Contents& at(int layer) const { return contents_[static_cast<size_t>(int64_t{layer} + 1)]; }
  bool IsInner(int layer) const { return layer >= 0 && layer < model_.num_layers(); }
  // Of a parameter, among all.
  size_t PlaceOf(ValueId param) const { return param_at_[static_cast<size_t>(param)]; }
  bool IsMade(ValueId id) const { return model_.value(id).producer != kNone; }

  bool PlaceNodes();
  bool PlaceReads();
  bool TakeRead(ValueId id, int reader);
  bool PlaceInputs();
  bool PlaceOutputs();

  bool IsNext(const LayerRun& run) const;
  bool AreEqual(int layer) const;
  bool HaveOnePlace(int layer) const;
  bool AreEqual(const Node& node, const Node& next, int layer) const;
  bool ReadSame(ValueId id, ValueId next, int layer) const;
  bool AreAlike(ValueId id, ValueId next, int layer) const;
  bool AreAlike(const Attrs& attrs, const Attrs& next, int layer) const;

  bool FoldAlike(absl::string_view text, absl::string_view next, int layer) const;

  const Graph& model_;
  std::vector<std::string> prefixes_;  // of names, by layer
  std::vector<Home> homes_;            // by value
  std::vector<Contents> contents_;     // of embedding, layers and head
  std::vector<ValueId> params_;        // in the graph's order
  std::vector<size_t> param_at_;       // by value: its place there
  bool is_layered_ = false;
};

}  // namespace mgc

#endif  // MGC_PASSES_FOLD_LAYER_RUNS_H_
