// Which part of the step every node of a local graph belongs to, and where every value lives.
//
// A part is the unit that becomes a segment: the nodes of one layer in one phase; of the update,
// the nodes of one layer between two computations that concern the whole step (token count,
// gradient norm). The first reduction of a gradient, with the cast that rounds what it sums, is a
// part of its own (kReducePart): it can start as soon as the layer's backward has run for the last
// micro-batch.
//
// Of a layer's forward or backward parts of their own are gathering what is stored in pieces
// (kGatherPart), summing gradients into pieces (kReducePart), and adding those to what has been
// collected (kCollectPart): they run beside the neighbouring layers.

#ifndef MGC_PASSES_PLAN_STAGE_PARTS_H_
#define MGC_PASSES_PLAN_STAGE_PARTS_H_

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

inline constexpr int kReducePart = -1;
inline constexpr int kGatherPart = -2;
inline constexpr int kCollectPart = -3;

struct Part {
  Phase phase = Phase::kForward;
  int number = 0;  // update: counts up in program order; or one of the above
  int layer = kNoLayer;

  friend bool operator<(const Part& a, const Part& b) {
    return std::tie(a.phase, a.number, a.layer) < std::tie(b.phase, b.number, b.layer);
  }
  friend bool operator==(const Part& a, const Part& b) {
    return a.phase == b.phase && a.number == b.number && a.layer == b.layer;
  }
};

// `the embedding`, `layer 3`, `the head`: as messages call them.
std::string NameOfLayer(int layer, int num_layers);

// Facts about the values of one local graph, shared by all classes.
class Parts {
 public:
  explicit Parts(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const Part& of(NodeId node) const { return parts_[static_cast<size_t>(node)]; }
  int num_update_parts() const { return num_update_parts_; }
  const std::vector<std::vector<NodeId>>& users() const { return users_; }

  // The parameter a value of the update belongs to, or kNone.
  ValueId ParamOf(ValueId id) const { return param_of_[Index(id)]; }
  // Layer of the first node that reads a parameter; of an accumulator, of the node that adds to it,
  // or the one that it is given to (passes/plan/stage/shared_sums.h).
  int HomeLayer(ValueId input) const { return home_layer_[Index(input)]; }
  // Whether more than one layer uses the parameter.
  bool IsTied(ValueId param) const { return tied_[Index(param)]; }
  // Layers of the update of such parameters.
  const std::set<int>& tied_layers() const { return tied_layers_; }
  // The value whose memory this one takes over: accumulators are added to in place, an assigned
  // output is its target, a gradient's reduction and mean replace its sum as far as their ops allow
  // it (OpDef::in_place). Itself for all others.
  ValueId RootOf(ValueId id) const;
  // The layer whose sum of a gradient alone a value of the update has come from; kNoLayer where
  // several have been added, or none has.
  int SourceLayer(ValueId id) const;
  // Whether the update adds an accumulator to others as it is.
  bool IsTerm(ValueId accumulator) const { return is_term_[Index(accumulator)]; }
  // Whether a node of the update makes a gradient's share of the norm: of copies of a parameter
  // only the owner's counts.
  bool IsNormShare(NodeId node) const { return is_norm_share_[static_cast<size_t>(node)]; }
  // Whether the value is a gradient on its way through the update (sum, reduced, mean): those are
  // in the gradients' memory.
  bool IsGradient(ValueId id) const { return is_gradient_[Index(id)]; }

 private:
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  void FindHomes();
  void KeepUnread();
  void FindChains();
  void FindChain(const Node& node, size_t result);
  void FindNormShares();
  void Number();
  ValueId RoundedFrom(ValueId narrow, ValueId wide) const;
  bool IsFirstReduction(const Node& node) const;
  bool StartsReduction(const Node& node) const;
  int NumberInMicroBatch(const Node& node) const;
  bool IsAccumulated(ValueId id) const;

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<Part> parts_;  // by node
  std::vector<bool> is_norm_share_;
  std::vector<ValueId> param_of_;  // by value
  std::vector<int> home_layer_;    // likewise
  std::vector<bool> tied_;
  std::set<int> tied_layers_;
  std::vector<bool> is_gradient_;
  std::vector<bool> is_accumulator_;
  std::vector<bool> is_term_;
  std::vector<ValueId> root_;
  int num_update_parts_ = 0;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_PARTS_H_
