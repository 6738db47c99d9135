// Writes down what `shard` decides at a node (passes/graph/shard/decisions.h).

#ifndef MGC_PASSES_GRAPH_SHARD_SHARD_NOTES_H_
#define MGC_PASSES_GRAPH_SHARD_SHARD_NOTES_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/types/factor_rule.h"
#include "graph/types/sharding.h"
#include "passes/graph/shard/claims.h"
#include "passes/graph/shard/decisions.h"

namespace mgc {

class ShardNotes {
 public:
  // `source` and `record` outlive this. Without a record, nothing happens.
  ShardNotes(const Graph& source, ShardRecord* record) : source_(source), record_(record) {}

  // Result `r` of a node as `claims` and the sums that operands carry have made it.
  void Made(const Node& node, size_t r, const Sharding& produced, const FactorRule& rule,
            const Claims& claims, const std::vector<AxisSet>& carries);
  // The operands' axes that claims have refused.
  void Refused(const Node& node, const Claims& claims);
  // A sum as its terms: cut as the first, owed where one owes.
  void Added(ValueId sum, const Sharding& produced, const std::vector<ValueId>& terms,
             const std::function<Sharding(ValueId)>& home);
  // The result of a pin.
  void Pinned(const Node& node, const Sharding& target);
  // All axes of a value, for one reason.
  void All(ValueId value, const Sharding& sharding, ShardRule rule, ValueId by);
  // All axes of values that live like `param`.
  void Like(const std::vector<ValueId>& values, const Sharding& sharding, ValueId param);

 private:
  const Graph& source_;
  ShardRecord* const record_;  // null: none
};

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_SHARD_NOTES_H_
