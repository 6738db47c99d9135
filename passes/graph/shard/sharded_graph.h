// The sharded graph while `shard` makes it: shardings of values, and changes of sharding shared by
// all consumers of one segment (the rule "convert" of docs/derivation.md).

#ifndef MGC_PASSES_GRAPH_SHARD_SHARDED_GRAPH_H_
#define MGC_PASSES_GRAPH_SHARD_SHARDED_GRAPH_H_

#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "passes/graph/rewrite.h"

namespace mgc {

// Values of the training graph are called old, their counterparts new.
class ShardedGraph {
 public:
  ShardedGraph(const Graph& training, const Mesh& mesh);

  const Mesh& mesh() const { return rewriter_.builder().graph().mesh(); }
  // The sharding of an old value's counterpart, its home.
  const Sharding& Home(ValueId old) const {
    return rewriter_.builder().graph().sharding(rewriter_.Mapped(old));
  }
  void SetHome(ValueId old, Sharding sharding);
  // The new value; kNone while there is none.
  ValueId Mapped(ValueId old) const { return rewriter_.Mapped(old); }
  void Map(ValueId old, ValueId now) { rewriter_.Map(old, now); }
  // Lets a whole copy stand for a value stored in pieces. The layer of `reader` makes it in
  // `phase`: when the step begins, or for each of its forwards or backwards.
  void MapToCopy(ValueId old, Phase phase, const Node& reader);

  // A new value in another sharding: a `reshard` node beside `place`, one for all readers of its
  // phase and layer.
  ValueId Convert(ValueId value, const Sharding& target, const Node& place);

  // Old operands of a sum in its sharding; one that lacks leading dims in that of the others.
  std::vector<ValueId> ConvertTerms(const std::vector<ValueId>& terms, const Sharding& sum,
                                    const Node& place);

  // Changes the sharding of new value `value` for good: the result stands for `old`.
  void Resolve(ValueId old, ValueId value, const Sharding& target, const Node& place);

  // Appends a node with one result that stands for `old` under `name`.
  ValueId Append(Node made, ValueId old, const Sharding& sharding, const std::string& name);

  // Appends a node with the results of `old`, laid out as `produced`, and brings them to `targets`.
  void Emit(Node made, const Node& old, const std::vector<Sharding>& produced,
            const std::vector<Sharding>& targets);

  Graph Finish() && { return std::move(rewriter_).Finish(); }

 private:
  struct Conversion {
    Phase phase;
    int layer;
    ValueId value;
  };

  Value NewValue(ValueId old, const Sharding& sharding, const std::string& name) const;
  ValueId Reshard(ValueId value, const Sharding& target, const Node& place,
                  const std::string& name);
  // What reports call a change of sharding that `place` asks for. In the model: f and g of the
  // Megatron-LM paper, with sequence parallelism their reduce-scatter/all-gather pairs, the keys
  // and values of context parallelism, the small reductions over a cut dim that is no product's
  // (the vocabulary of a loss), and the loss. Of what runs once a step: what is reduced or
  // gathered.
  std::string LabelOf(ValueId value, const Sharding& target, const Node& place) const;

  const Graph& source_;
  const std::vector<std::string> labels_;  // by node of the training graph
  Rewriter rewriter_;
  std::map<ValueId, std::vector<Conversion>> conversions_;  // by new value
};

// Without the sums and maxima owed over `axes`.
Sharding Paid(Sharding sharding, AxisSet axes);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_SHARDED_GRAPH_H_
