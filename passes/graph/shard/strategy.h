// A strategy bound to a mesh: which axes cut which logical dims. An ordered table; a row is a
// pattern of dim names with the axes it gives.
//
//   (batch, seq, embed) home: seq -> cp*tp       the residual stream
//   *:                        batch -> dp
//   *:                        heads -> tp, kv_heads -> tp.0, mlp -> tp, vocab -> tp
//   *:                        seq -> cp
//
// Data, tensor, sequence, vocabulary and context parallelism are rows of this table and nothing
// else. It is made of what a file says (passes/config/strategy_spec.h).

#ifndef MGC_PASSES_GRAPH_SHARD_STRATEGY_H_
#define MGC_PASSES_GRAPH_SHARD_STRATEGY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "passes/config/parallel_config.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

// What a row's scope is held against: a value's name and the origin of the op that makes it.
struct ValueNames {
  absl::string_view name;
  absl::string_view origin;
};
ValueNames NamesOf(const Graph& graph, ValueId id);

struct StrategyRow {
  std::vector<std::string> pattern;  // of all dims, an empty name: any; empty: any value
  // Dim name -> axes, major first; no axes: the dim stays whole whatever later rows say.
  std::vector<std::pair<std::string, AxisList>> rules;
  bool home = false;       // forward values that match go to their Seed, whoever makes them
  std::string scope = {};  // a pattern (MatchesGlob); empty: any value
  // By rule, how the strategy's file says it: `row * { mlp -> tp }`. For reports.
  std::vector<std::string> said = {};
};

// What the rows give a dim, and the row that decided: where a rule names it, even to keep it whole.
struct SeededDim {
  AxisList axes;
  absl::optional<std::string> said;
};

// Of parameters in `scope`, optimizer states, sums of gradients or the parameters themselves are
// stored in pieces over those of the axes over which the gradient is owed: ZeRO-1, 2 and 3 (ZeRO:
// Memory Optimizations Toward Training Trillion Parameter Models, section 5).
struct StorageRow {
  StoredKind kind = StoredKind::kStates;
  AxisSet axes;
  std::string scope = {};
  std::string said = {};  // `store states -> dp when zero`
};

struct Strategy {
  std::vector<StrategyRow> rows;
  std::vector<StorageRow> storage;  // of a kind the first whose scope matches holds
  std::map<std::string, GatherTaken, std::less<>> gathers;
  std::set<std::string, std::less<>> uneven = {};  // dims whose pieces need not be equal
  // Parts of axes that needed no split, `tp.0` and `tp.1`: the whole axis, or none, of one rank.
  std::map<std::string, AxisList, std::less<>> parts = {};

  // The sharding the rows give a value; an axis is used at most once, earlier rows and dims first.
  Sharding Seed(const TensorType& type, const ValueNames& names = {}) const;
  // The same dim by dim.
  std::vector<SeededDim> SeedDims(const TensorType& type, const ValueNames& names = {}) const;
  // Whether a forward value is brought home to its Seed.
  bool HasHome(const TensorType& type, const ValueNames& names = {}) const;
  // Where a value of a graph is brought by that; nothing where it is no forward value, has no home,
  // or cannot be cut as its home is, as a slice of the residual stream.
  absl::optional<Sharding> HomeOf(const Graph& graph, ValueId id, const Mesh& mesh) const;
  // Whether a dim may be cut into so many pieces, or over these axes: equal ones, unless it is
  // `uneven` or has a multiple, to which every rank's room is rounded up anyway.
  bool Allows(const Dim& dim, int64_t pieces) const;
  bool Allows(const Dim& dim, const AxisList& axes, const Mesh& mesh) const;
  bool Allows(const TensorType& type, const Sharding& sharding, const Mesh& mesh) const;
  // The axes over whose pieces the parameter's state is stored.
  AxisSet StorageOf(absl::string_view parameter) const;
  // Whether an input of a graph is a parameter that is stored so: it is trained and no scalar.
  bool Stores(const Graph& graph, const GraphInput& input) const;
  // The row that says so of what a parameter has; null: none does.
  const StorageRow* StorageRowOf(StoredKind kind, absl::string_view parameter) const;
  GatherTaken TakenGather(absl::string_view dim) const;
};

// The sizes of dims by name; of one that has several, the largest.
using SizeByDim = std::map<std::string, int64_t, std::less<>>;
SizeByDim SizesOf(const Graph& graph);

struct MeshStrategy {
  Mesh mesh;
  Strategy strategy;
};

// The mesh of a configuration, axes in its order and split as the strategy says, and the strategy
// on it. Rows and stores whose condition the configuration does not fulfil are left out; an axis of
// one rank cuts nothing. InvalidArgument for a configuration that has no mesh.
absl::StatusOr<MeshStrategy> BindStrategy(const StrategySpec& spec, const ParallelConfig& config,
                                          const SizeByDim& sizes);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SHARD_STRATEGY_H_
