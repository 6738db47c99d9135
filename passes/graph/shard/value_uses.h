// What the sharding rules ask about a value's uses: is it a weight or a weight's gradient, may a
// sum over it stay owed. Facts about the graph alone; no sharding is decided here.
//
// A weight is a parameter, or what linear ops make of weights alone: a transposed or reshaped
// parameter, one of the pieces of a packed one, several concatenated. It claims axes as a parameter
// does, and its gradient is laid out like it.

#ifndef MGC_PASSES_GRAPH_SHARD_VALUE_USES_H_
#define MGC_PASSES_GRAPH_SHARD_VALUE_USES_H_

#include <functional>
#include <vector>

#include "graph/ir/graph.h"

namespace mgc {

// Sharding of a value as far as the sweep has come: null for what it has not reached. Weights have
// theirs before backward begins, results of the node at hand the one they were produced in.
using KnownSharding = std::function<const Sharding*(ValueId)>;

class ValueUses {
 public:
  explicit ValueUses(const Graph& graph);

  bool IsWeight(ValueId id) const { return is_weight_[Index(id)]; }
  // The operands of a node in the order in which they claim axes: weights, then the others, from
  // left to right.
  std::vector<size_t> ClaimOrder(const Node& node) const;
  // The weight whose gradient this is, or kNone: of a parameter, what its accumulator collects.
  ValueId WeightOfGradient(ValueId id) const { return gradient_of_[Index(id)]; }
  // Optimizer state of a parameter.
  const std::vector<ValueId>& StatesOf(ValueId param) const { return states_[Index(param)]; }
  // The graph input this value is assigned to, or kNone.
  ValueId AssignedTo(ValueId id) const { return assigned_to_[Index(id)]; }

  // The rule "resolve": entries of the norm and of the loss stay owed, the loss also through linear
  // ops on the scalar, what goes into accumulators alone, and a value whose only use is a sum, or
  // in its layer a `reshard`, which pays on the way to its sharding, or an op that only moves
  // elements (a reshape): what follows knows where they go.
  bool StaysOwed(ValueId id) const;

  // Whether the node's results are linear in operand i with all others fixed, so that a sum owed by
  // it is owed by the results.
  bool CarriesOwed(const Node& node, int i) const;

  // The rule "push": whether a backward gradient may stay owed over `axis` through all its
  // consumers.
  bool MayPush(ValueId id, AxisId axis, const KnownSharding& known) const;

 private:
  static size_t Index(ValueId id) { return static_cast<size_t>(id); }
  bool ConvertsLoss(const Node& node) const;
  bool OnlyMoves(const Node& node) const;
  void FindWeights();
  void FindGradients();
  void FindCollected();
  bool MayPushInto(const Node& node, ValueId id, AxisId axis, const KnownSharding& known) const;
  bool WillOwe(ValueId id, AxisId axis, const KnownSharding& known) const;
  Sharding WeightAt(ValueId id, const KnownSharding& known) const;

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_weight_;
  std::vector<bool> is_collected_;
  std::vector<ValueId> gradient_of_;
  std::vector<ValueId> assigned_to_;
  std::vector<std::vector<ValueId>> states_;
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_VALUE_USES_H_
