#include "passes/graph/split_products.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/ir/collective.h"
#include "graph/ir/op.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

// How the rows of a product are cut.
struct Rows {
  std::string factor;
  int from = 0;        // its dim of operand 0
  int to = 0;          // and of the result
  int64_t runs = 1;    // of rows: one for each rank that has some before or behind the collective
  int64_t length = 1;  // of a run
  int64_t pieces = 1;
};

// Every factor that is a dim of operand 0 and one of the result, and of nothing else.
std::vector<Rows> RowFactorsOf(const Graph& graph, const Node& node) {
  std::vector<Rows> found;
  if (!node.op->with_major || node.outputs.size() != 1) return found;
  const FactorRule rule = RuleOf(graph, node);
  const auto dim_of = [](const TensorFactors& tensor, int factor) {
    for (size_t d = 0; d < tensor.size(); ++d) {
      if (tensor[d] == DimFactors{factor}) return static_cast<int>(d);
    }
    return -1;
  };
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    const int from = dim_of(rule.operands[0], f), to = dim_of(rule.results[0], f);
    const bool alone = std::all_of(rule.operands.begin() + 1, rule.operands.end(),
                                   [&](const TensorFactors& t) { return dim_of(t, f) < 0; });
    if (from >= 0 && to >= 0 && alone) found.push_back({rule.factors[f].name, from, to});
  }
  return found;
}

// `axes` cut the rows where they are cut most.
bool CutRuns(const Graph& graph, const Dim& dim, const AxisList& axes, int64_t pieces, Rows* rows) {
  rows->runs = graph.mesh().Size(axes);
  if (dim.multiple != 1 || dim.size % rows->runs != 0) return false;
  rows->length = dim.size / rows->runs;
  rows->pieces = std::min(pieces, rows->length);
  while (rows->length % rows->pieces != 0) --rows->pieces;
  return rows->pieces > 1;
}

// The same with one dim as [runs, rows of a run], or `rows` of each of them.
TensorType InRuns(TensorType type, int dim, int64_t runs, int64_t length) {
  Dim& inner = type.dims[static_cast<size_t>(dim)];
  inner.size = length;
  const Dim major = {runs, absl::StrCat(inner.name, "_runs"), 1};
  if (runs > 1) type.dims.insert(type.dims.begin() + dim, major);
  return type;
}
Sharding InRuns(Sharding sharding, int dim, int64_t runs) {
  if (runs > 1) sharding.dims.insert(sharding.dims.begin() + dim + 1, AxisList());
  return sharding;
}

// Where a graph is cut.
struct Cuts {
  std::map<NodeId, Rows> products;
  std::map<NodeId, Rows> collectives;  // before or behind them
  std::map<NodeId, NodeId> sums;       // by product: the reduction of its result
};

class CutFinder {
 public:
  CutFinder(const Graph& local, int64_t pieces)
      : local_(local), pieces_(pieces), users_(local.Users()) {}

  Cuts Run() {
    for (size_t n = 0; n < local_.nodes().size(); ++n) Visit(static_cast<NodeId>(n));
    return std::move(cuts_);
  }

 private:
  void Visit(NodeId n) {
    const Node& node = local_.node(n);
    const bool of_layers = node.layer >= 0 && node.layer < local_.num_layers();
    if (!node.op->collective || !of_layers || !IsOfForward(node)) return;
    const Collective collective = CollectiveOf(local_, node);
    if (collective.kind == CollectiveKind::kAllGather && collective.dim >= 0) {
      FindReaders(n, collective.dim);
    }
    if (collective.kind == CollectiveKind::kReduceScatter ||
        collective.kind == CollectiveKind::kAllReduce) {
      FindMaker(n, collective.dim);
    }
  }

  // What backward computes again is no gradient of anything.
  bool IsOfForward(const Node& node) const {
    return node.phase == Phase::kForward ||
           (node.phase == Phase::kBackward && local_.value(node.outputs[0]).primal == kNone);
  }
  bool IsCut(NodeId n) const { return cuts_.products.count(n) > 0; }
  static bool Together(const Node& a, const Node& b) {
    return a.phase == b.phase && a.layer == b.layer;
  }

  // What reads a gathered value, as far as it can be cut.
  void FindReaders(NodeId gather, int dim) {
    const Node& node = local_.node(gather);
    const ValueId whole = node.outputs[0];
    const Dim& cut = local_.type(whole).dims[static_cast<size_t>(dim)];
    const AxisList& axes = local_.sharding(node.inputs[0]).dims[static_cast<size_t>(dim)];
    for (NodeId user : users_[static_cast<size_t>(whole)]) {
      const Node& reader = local_.node(user);
      const bool once = std::count(reader.inputs.begin(), reader.inputs.end(), whole) == 1;
      if (!once || reader.inputs[0] != whole || !Together(reader, node)) continue;
      for (Rows& rows : RowFactorsOf(local_, reader)) {
        if (rows.from != dim || !CutRuns(local_, cut, axes, pieces_, &rows)) continue;
        cuts_.collectives.emplace(gather, rows);
        cuts_.products.emplace(user, std::move(rows));
      }
    }
  }

  // What is made for a reduction alone. A reduction of no dim is cut along the longest that can be.
  void FindMaker(NodeId sum, int dim) {
    const ValueId part = local_.node(sum).inputs[0];
    const NodeId maker = local_.value(part).producer;
    if (maker == kNone || users_[static_cast<size_t>(part)].size() != 1) return;
    const Node& product = local_.node(maker);
    if (!Together(product, local_.node(sum)) || IsCut(maker)) return;
    absl::optional<Rows> longest;
    for (Rows& rows : RowFactorsOf(local_, product)) {
      const size_t to = static_cast<size_t>(rows.to);
      const AxisList& axes = local_.sharding(local_.node(sum).outputs[0]).dims[to];
      const bool fits = (dim < 0 || rows.to == dim) &&
                        CutRuns(local_, local_.type(part).dims[to], axes, pieces_, &rows);
      if (!fits || (longest.has_value() && rows.length <= longest->length)) continue;
      longest = std::move(rows);
    }
    if (!longest.has_value()) return;
    cuts_.sums.emplace(maker, sum);
    cuts_.collectives.emplace(sum, *longest);
    cuts_.products.emplace(maker, *std::move(longest));
  }

  const Graph& local_;
  const int64_t pieces_;
  const std::vector<std::vector<NodeId>> users_;
  Cuts cuts_;
};

class ProductSplitting {
 public:
  ProductSplitting(const Graph& local, Cuts cuts)
      : local_(local), cuts_(std::move(cuts)), made_(local, local.level()) {}

  Graph Run() {
    for (size_t n = 0; n < local_.nodes().size(); ++n) {
      const NodeId id = static_cast<NodeId>(n);
      const auto product = cuts_.products.find(id);
      const auto collective = cuts_.collectives.find(id);
      if (product != cuts_.products.end()) {
        AddProducts(id, product->second);
      } else if (collective != cuts_.collectives.end()) {
        AddCollective(local_.node(id), collective->second);
      } else {
        made_.Copy(local_.node(id));
      }
    }
    return std::move(made_).Finish();
  }

 private:
  // A product in pieces, each with its reduction right behind it.
  void AddProducts(NodeId id, const Rows& rows) {
    const Node& node = local_.node(id);
    const auto sum = cuts_.sums.find(id);
    const bool is_summed = sum != cuts_.sums.end();
    const auto gathered = pieces_of_.find(node.inputs[0]);
    const std::vector<ValueId> operands =
        gathered != pieces_of_.end() ? gathered->second : Cut(node, rows);
    std::vector<ValueId> results;
    for (ValueId operand : operands) {
      std::vector<ValueId> inputs = {operand};
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        inputs.push_back(made_.Mapped(node.inputs[i]));
      }
      Attrs attrs = rows.runs > 1 ? node.op->with_major(node.attrs, rows.factor) : node.attrs;
      results.push_back(AddPiece(node, std::move(inputs), std::move(attrs), rows.to, rows));
      if (is_summed) results.back() = Exchange(local_.node(sum->second), results.back(), rows);
    }
    if (is_summed) {
      pieces_of_[node.outputs[0]] = std::move(results);
    } else {
      Join(node, results, rows.to, rows);
    }
  }

  // Of a gather, before its products; of a reduction, behind them.
  void AddCollective(const Node& node, const Rows& rows) {
    const auto summed = pieces_of_.find(node.inputs[0]);
    if (summed != pieces_of_.end()) return Join(node, summed->second, rows.to, rows);
    std::vector<ValueId> pieces;
    for (ValueId piece : Cut(node, rows)) pieces.push_back(Exchange(node, piece, rows));
    // For those who read it whole.
    Join(node, pieces, rows.from, rows);
    pieces_of_[node.outputs[0]] = std::move(pieces);
  }

  ValueId Exchange(const Node& node, ValueId piece, const Rows& rows) {
    const bool gathers = CollectiveOf(local_, node).kind == CollectiveKind::kAllGather;
    return AddPiece(node, {piece}, node.attrs, gathers ? rows.from : rows.to, rows);
  }

  // What the node makes, of one piece; its dim `dim` holds the rows.
  ValueId AddPiece(const Node& node, std::vector<ValueId> inputs, Attrs attrs, int dim,
                   const Rows& rows) {
    return Add(node, node.op->name, std::move(inputs), std::move(attrs), PieceName(node.outputs[0]),
               InRuns(local_.sharding(node.outputs[0]), dim, rows.runs));
  }

  // The pieces of the node's operand 0.
  std::vector<ValueId> Cut(const Node& node, const Rows& rows) {
    const ValueId whole = node.inputs[0];
    const Sharding sharding = InRuns(local_.sharding(whole), rows.from, rows.runs);
    ValueId from = made_.Mapped(whole);
    if (rows.runs > 1) {
      const TensorType type = InRuns(local_.type(whole), rows.from, rows.runs, rows.length);
      from = Reshape(node, from, type, absl::StrCat(local_.value(whole).name, ".runs"), sharding);
    }
    const int64_t dim = rows.from + (rows.runs > 1 ? 1 : 0);
    const int64_t size = rows.length / rows.pieces;
    std::vector<ValueId> pieces;
    for (int64_t begin = 0; begin < rows.length; begin += size) {
      const Attrs range = {{kDimAttr, dim}, {kBeginAttr, begin}, {kEndAttr, begin + size}};
      pieces.push_back(Add(node, "slice", {from}, range, PieceName(whole), sharding));
    }
    return pieces;
  }

  // The node's result, of its pieces; its dim `to` holds the rows.
  void Join(const Node& node, const std::vector<ValueId>& pieces, int to, const Rows& rows) {
    const Value& value = local_.value(node.outputs[0]);
    const bool in_runs = rows.runs > 1;
    const Attrs dim = {{kDimAttr, static_cast<int64_t>(to + (in_runs ? 1 : 0))}};
    ValueId whole =
        Add(node, "concat", pieces, dim, in_runs ? absl::StrCat(value.name, ".runs") : value.name,
            InRuns(*value.sharding, to, rows.runs));
    if (in_runs) whole = Reshape(node, whole, value.type, value.name, *value.sharding);
    made_.Map(node.outputs[0], whole);
  }

  std::string PieceName(ValueId whole) const {
    return absl::StrCat(local_.value(whole).name, ".piece");
  }

  ValueId Reshape(const Node& like, ValueId from, const TensorType& type, const std::string& name,
                  Sharding sharding) {
    const OpDef& op = *FindOp("reshape");
    return Add(like, op.name, {from}, op.resized({}, {&type}), name, std::move(sharding));
  }

  ValueId Add(const Node& like, const std::string& op, std::vector<ValueId> inputs, Attrs attrs,
              const std::string& name, Sharding sharding) {
    const ValueId made = made_.builder().Emit(op, std::move(inputs), std::move(attrs), like, name);
    made_.builder().SetSharding(made, std::move(sharding));
    return made;
  }

  const Graph& local_;
  const Cuts cuts_;
  Rewriter made_;
  std::map<ValueId, std::vector<ValueId>> pieces_of_;  // of an old value, once they are made
};

}  // namespace

Graph SplitProducts(const Graph& local, int64_t pieces) {
  if (pieces <= 1) return local;
  return DropDeadNodes(ProductSplitting(local, CutFinder(local, pieces).Run()).Run());
}

}  // namespace mgc
