#include "passes/plan/stage/whole_vectors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/step_vector.h"
#include "passes/graph/rewrite.h"

namespace mgc {

VectorEntries EntriesOf(const Parts& parts, const LayerMap& layers, const Node& packing) {
  VectorEntries entries;
  const auto layer_of = [&](size_t i) {
    const ValueId param = parts.ParamOf(packing.inputs[i]);
    return param == kNone ? kNoLayer : parts.HomeLayer(param);
  };
  const auto is_folded = [&](int layer) {
    return layers.folds() && layer >= 0 && layer < layers.num_kept();
  };
  for (size_t i = 0; i < packing.inputs.size();) {
    if (!is_folded(layer_of(i))) {
      entries.of_layers.try_emplace(layers.FirstOf(layer_of(i++)), entries.count);
      entries.of_operands.push_back(entries.count++);
      continue;
    }
    const size_t first = i;
    std::map<int, int64_t> counts;  // by kept layer
    for (; i < packing.inputs.size() && is_folded(layer_of(i)); ++i) ++counts[layer_of(i)];
    for (int layer = 0; layer < layers.num_layers(); ++layer) {
      entries.of_layers[layer] = entries.count;
      entries.count += counts[layers.KeptFor(layer)];
    }
    int64_t number = 0;  // among those of its layer
    for (size_t o = first; o < i; ++o) {
      number = o > first && layer_of(o) == layer_of(o - 1) ? number + 1 : 0;
      entries.of_operands.push_back(entries.of_layers[layers.FirstOf(layer_of(o))] + number);
    }
  }
  return entries;
}

namespace {

class Widening {
 public:
  Widening(const Graph& folded, const LayerMap& layers)
      : folded_(folded),
        parts_(folded),
        layers_(layers),
        sizes_(folded.values().size(), 0),
        rewriter_(folded, folded.level()) {}

  absl::StatusOr<Graph> Run() && {
    for (const Node& node : folded_.nodes()) {
      if (IsWhole(node)) {
        rewriter_.Copy(node);
      } else if (!AddWide(node)) {
        return absl::FailedPreconditionError(
            absl::StrCat("%", EscapeBytes(folded_.value(node.outputs[0]).name),
                         " is made of a vector and is none of its size"));
      }
    }
    return std::move(rewriter_).Finish();
  }

 private:
  int64_t& size(ValueId id) { return sizes_[static_cast<size_t>(id)]; }

  // What is neither a vector of another size nor made of one, or the sum of one.
  bool IsWhole(const Node& node) {
    if (PacksStepVector(node)) {
      const int64_t entries = EntriesOf(parts_, layers_, node).count;
      if (entries == static_cast<int64_t>(node.inputs.size())) return true;
      size(node.outputs[0]) = entries;
      return false;
    }
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [this](ValueId id) { return size(id) > 0; });
    return !reads || std::all_of(node.outputs.begin(), node.outputs.end(),
                                 [this](ValueId id) { return folded_.type(id).ndim() == 0; });
  }

  // False where its results do not have the vector's size on every rank.
  bool AddWide(const Node& node) {
    const ValueId in = node.inputs[0];
    const ValueId out = node.outputs[0];
    const bool packs = PacksStepVector(node);
    const Sharding& sharding = folded_.sharding(out);
    const bool is_vector = node.outputs.size() == 1 && (packs || node.inputs.size() == 1) &&
                           folded_.type(out).ndim() == 1 && sharding.SplitAxes().empty() &&
                           sharding.storage.empty() &&
                           (packs || folded_.type(out) == folded_.type(in));
    if (!is_vector) return false;
    size(out) = size(packs ? out : in);
    Node copy = node;
    for (ValueId& id : copy.inputs) id = rewriter_.Mapped(id);
    Value wide = folded_.value(out);
    wide.type.dims[0].size = size(out);
    GraphBuilder& builder = rewriter_.builder();
    const NodeId added = builder.AppendRaw(std::move(copy), {std::move(wide)});
    rewriter_.Map(out, builder.graph().node(added).outputs[0]);
    return true;
  }

  const Graph& folded_;
  const Parts parts_;
  const LayerMap& layers_;
  std::vector<int64_t> sizes_;  // by value: of vectors, in the model
  Rewriter rewriter_;
};

}  // namespace

absl::StatusOr<Graph> WithWholeVectors(const Graph& folded, const LayerMap& layers) {
  return Widening(folded, layers).Run();
}

}  // namespace mgc
