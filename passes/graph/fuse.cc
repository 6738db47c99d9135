#include "passes/graph/fuse.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/ir/op.h"
#include "passes/graph/expansion.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

class Fuser {
 public:
  explicit Fuser(const Graph& local)
      : source_(local),
        users_(local.Users()),
        is_output_(local.values().size(), false),
        absorbed_(local.nodes().size(), false),
        fused_(local.nodes().size()) {
    for (const GraphOutput& output : local.outputs()) {
      is_output_[static_cast<size_t>(output.value)] = true;
    }
  }

  Graph Run() {
    for (size_t n = 0; n < source_.nodes().size(); ++n) Visit(static_cast<NodeId>(n));
    Rewriter rewriter(source_, Level::kLocal);
    for (size_t n = 0; n < source_.nodes().size(); ++n) {
      if (absorbed_[n]) continue;
      rewriter.Copy(fused_[n].op == nullptr ? source_.nodes()[n] : fused_[n]);
      AccumulateNow(source_.nodes()[n], &rewriter);
    }
    return std::move(rewriter).Finish();
  }

 private:
  // The producer of a value that is read once, by a node of the same layer and phase; else null.
  const Node* OnlyFor(ValueId id, const Node& reader) const {
    const NodeId producer = source_.value(id).producer;
    const size_t at = static_cast<size_t>(id);
    if (producer == kNone || users_[at].size() != 1 || is_output_[at]) return nullptr;
    const Node& node = source_.node(producer);
    const bool together = node.layer == reader.layer && node.phase == reader.phase &&
                          node.outputs.size() == 1 && !absorbed_[static_cast<size_t>(producer)] &&
                          fused_[static_cast<size_t>(producer)].op == nullptr;
    return together ? &node : nullptr;
  }

  // A contribution is added to its accumulator as soon as it is made: it need not live on.
  void AccumulateNow(const Node& node, Rewriter* rewriter) {
    for (ValueId id : node.outputs) {
      for (NodeId user : users_[static_cast<size_t>(id)]) {
        const Node& use = source_.node(user);
        const bool now = use.op->Has(OpRole::kCollect) && use.inputs[1] == id &&
                         use.phase == node.phase && !absorbed_[static_cast<size_t>(user)];
        if (!now) continue;
        rewriter->Copy(use);
        absorbed_[static_cast<size_t>(user)] = true;
      }
    }
  }

  // Nodes that stand where an expansion has its nodes, and what they read where it has operands.
  struct Match {
    std::vector<NodeId> nodes;
    std::vector<ValueId> operands;
    std::vector<std::pair<ValueId, ValueId>> same_type;  // operand of the pattern, what is there
  };

  // Looks for an expansion that ends in the node.
  void Visit(NodeId n) {
    for (const Pattern& pattern : patterns_) {
      Match match;
      match.nodes.assign(pattern.nodes.size(), kNone);
      match.operands.assign(static_cast<size_t>(pattern.num_operands()), kNone);
      if (MatchNode(pattern, pattern.nodes.size() - 1, n, &match) && Fits(match)) {
        if (Replace(pattern, match)) return;
      }
    }
  }

  bool MatchNode(const Pattern& pattern, size_t at, NodeId n, Match* match) const {
    const Node& node = source_.node(n);
    const PatternNode& wanted = pattern.nodes[at];
    if (node.op != wanted.op || node.inputs.size() != wanted.inputs.size()) return false;
    match->nodes[at] = n;
    std::vector<ValueId> inputs = node.inputs;
    Match tried = *match;
    bool found = MatchInputs(pattern, wanted, node, inputs, &tried);
    if (!found && node.op->Has(OpRole::kSum) && inputs.size() == 2) {
      std::swap(inputs[0], inputs[1]);
      tried = *match;
      found = MatchInputs(pattern, wanted, node, inputs, &tried);
    }
    if (found) *match = std::move(tried);
    return found;
  }

  bool MatchInputs(const Pattern& pattern, const PatternNode& wanted, const Node& reader,
                   const std::vector<ValueId>& inputs, Match* match) const {
    const std::vector<int>& types = wanted.op->type_operands;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int maker = pattern.MakerOf(wanted.inputs[i]);
      if (maker >= 0) {
        const Node* node = OnlyFor(inputs[i], reader);
        if (node == nullptr ||
            !MatchNode(pattern, static_cast<size_t>(maker), IdOf(*node), match)) {
          return false;
        }
      } else if (std::find(types.begin(), types.end(), i) != types.end()) {
        match->same_type.emplace_back(wanted.inputs[i], inputs[i]);
      } else {
        ValueId& operand = match->operands[static_cast<size_t>(wanted.inputs[i])];
        if (operand != kNone && operand != inputs[i]) return false;
        operand = inputs[i];
      }
    }
    return true;
  }

  // Whether all operands are known, and of the type of what stands where only types count.
  bool Fits(const Match& match) const {
    const std::vector<ValueId>& operands = match.operands;
    return std::find(operands.begin(), operands.end(), kNone) == operands.end() &&
           std::all_of(match.same_type.begin(), match.same_type.end(), [&](const auto& pair) {
             const ValueId operand = operands[static_cast<size_t>(pair.first)];
             return source_.type(operand) == source_.type(pair.second) &&
                    source_.local_shape(operand) == source_.local_shape(pair.second);
           });
  }

  // The attributes of the fused op that its small ops have; false when they are not what it stands
  // for.
  bool FindAttrs(const Pattern& pattern, const Match& match, Attrs* attrs) const {
    for (const AttrSpec& spec : pattern.fused->attrs) {
      for (NodeId n : match.nodes) {
        const AttrValue* value = source_.node(n).attrs.Find(spec.name);
        if (value != nullptr) attrs->Set(spec.name, *value);
      }
    }
    const Pattern exact = PatternOf(*pattern.fused, *attrs);
    for (size_t i = 0; i < match.nodes.size(); ++i) {
      if (exact.nodes[i].attrs != source_.node(match.nodes[i]).attrs) return false;
    }
    return true;
  }

  bool IsWanted(const OpDef& fused, const Match& match, const Attrs& attrs) const {
    std::vector<const TensorType*> operands;
    for (ValueId id : match.operands) operands.push_back(&source_.type(id));
    return InferTypes(fused, attrs, operands).ok() &&
           fused.replaces_expansion(OpUse{attrs, operands, {}});
  }

  bool Replace(const Pattern& pattern, const Match& match) {
    Attrs attrs;
    if (!FindAttrs(pattern, match, &attrs) || !IsWanted(*pattern.fused, match, attrs)) return false;
    for (NodeId n : match.nodes) absorbed_[static_cast<size_t>(n)] = true;
    Node fused = source_.node(match.nodes.back());
    // What collects stands where its term was made: the accumulator is there from the start.
    const bool collects = fused.op->Has(OpRole::kCollect);
    const NodeId place = collects ? source_.value(fused.inputs[1]).producer : match.nodes.back();
    fused.op = pattern.fused;
    fused.inputs = match.operands;
    fused.attrs = std::move(attrs);
    absorbed_[static_cast<size_t>(place)] = false;
    fused_[static_cast<size_t>(place)] = std::move(fused);
    return true;
  }

  NodeId IdOf(const Node& node) const {
    return static_cast<NodeId>(&node - source_.nodes().data());
  }

  const Graph& source_;
  const std::vector<Pattern> patterns_ = PatternsToReplace();
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> is_output_;  // by value
  std::vector<bool> absorbed_;   // by node
  std::vector<Node> fused_;      // by node; op null where nothing changes
};

}  // namespace

Graph Fuse(const Graph& local) { return Fuser(local).Run(); }

}  // namespace mgc
