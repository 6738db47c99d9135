// Where `shard` puts values: what operands claim and hand on, and where produced values go (rules
// "claims", "home", "resolve", "tie", "push" of docs/derivation.md).

#ifndef MGC_PASSES_GRAPH_SHARD_HOMES_H_
#define MGC_PASSES_GRAPH_SHARD_HOMES_H_

#include <vector>

#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "passes/graph/shard/claims.h"
#include "passes/graph/shard/decisions.h"
#include "passes/graph/shard/sharded_graph.h"
#include "passes/graph/shard/strategy.h"
#include "passes/graph/shard/value_uses.h"

namespace mgc {

class Homes {
 public:
  // All outlive this. What is decided goes to `record`, if there is one.
  Homes(const Graph& source, const Strategy& strategy, const ValueUses& uses,
        const ShardedGraph& made, ShardRecord* record)
      : source_(source), strategy_(strategy), uses_(uses), made_(made), record_(record) {}
  // The rule "home" of a graph input. A parameter whose states are stored in pieces is so itself,
  // over the axes that do not cut it anyway.
  Sharding OfInput(const GraphInput& input) const;
  // The rule "home" of an accumulator, which collects `gradient`: its sharding and owed sum, or, of
  // a parameter whose gradients are stored in pieces, the parameter's pieces, where it owes a sum
  // over all of them. What it owes over other axes it goes on owing.
  Sharding OfAccumulator(ValueId accumulator, ValueId gradient) const;
  // Whether forward and backward gather a value stored in pieces each time, and not once a step.
  bool IsGatheredEachTime(ValueId id) const;
  // The shardings a node's results are brought to.
  std::vector<Sharding> TargetsOf(const Node& node, const std::vector<Sharding>& produced) const;
  // The rule "claims": weights claim axes first, then a weight's gradient, which closes its whole
  // dims, the other operands from left to right, last the homes of results.
  void ClaimInOrder(const Node& node, const FactorRule& rule, Claims* claims) const;
  // The sums that each operand hands on to the results. Of two operands that are multiplied and owe
  // over one axis the second pays; operands side by side (a concatenation) are lifted alike.
  std::vector<AxisSet> CarriedOf(const Node& node, const std::vector<ValueId>& operands) const;
  // Where a produced value goes once `kept` stays owed: its home.
  Sharding Target(ValueId old, const Sharding& produced, AxisSet kept) const;

 private:
  absl::optional<Sharding> HomeOf(ValueId result) const;
  // What the table's rows have given the dims of a value.
  void NoteRows(ValueId value, const Sharding& sharding, bool brought) const;
  // Where a value goes that has no row of its own.
  void NoteWay(ValueId value, const Sharding& produced, const Sharding& target) const;
  // What result `result` of a node goes on owing.
  AxisSet Kept(const Node& node, const std::vector<Sharding>& produced, size_t result) const;

  const Graph& source_;
  const Strategy& strategy_;
  const ValueUses& uses_;
  const ShardedGraph& made_;
  ShardRecord* const record_;  // null: none
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_HOMES_H_
