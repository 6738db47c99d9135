#include "passes/fuse.h"

#include <utility>
#include <vector>

#include "graph/op.h"
#include "passes/rewrite.h"

namespace mgc {
namespace {

class Fuser {
 public:
  explicit Fuser(const Graph& local)
      : source_(local),
        users_(local.Users()),
        absorbed_(local.nodes().size(), false),
        fused_(local.nodes().size()) {}

  Graph Run() {
    for (size_t n = 0; n < source_.nodes().size(); ++n) Match(static_cast<NodeId>(n));
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
    if (producer == kNone || users_[static_cast<size_t>(id)].size() != 1) return nullptr;
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
        const bool now = use.op->name == "accumulate" && use.inputs[1] == id &&
                         use.phase == node.phase && !absorbed_[static_cast<size_t>(user)];
        if (!now) continue;
        rewriter->Copy(use);
        absorbed_[static_cast<size_t>(user)] = true;
      }
    }
  }

  void Absorb(const Node& node) {
    absorbed_[static_cast<size_t>(&node - source_.nodes().data())] = true;
  }

  Node Replace(NodeId n, const char* op, std::vector<ValueId> inputs, Attrs attrs) {
    Node node = source_.node(n);
    node.op = FindOp(op);
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    fused_[static_cast<size_t>(n)] = node;
    return node;
  }

  void Match(NodeId n) {
    const Node& node = source_.node(n);
    if (node.op->name == "accumulate") MatchAccumulate(n, node);
    if (node.op->name == "add" && node.inputs.size() == 2) MatchCrossEntropy(n, node);
    if (node.op->name == "gelu") MatchBiasGelu(n, node);
  }

  void MatchAccumulate(NodeId n, const Node& node) {
    const Node* term = OnlyFor(node.inputs[1], node);
    if (term == nullptr) return;
    const bool product = term->op->name == "matmul";
    if (!product && term->op->name != "lookup_grad") return;
    // In the term's place: the accumulator is there from the start.
    const NodeId place = source_.value(node.inputs[1]).producer;
    Node fused = node;
    fused.op = FindOp(product ? "matmul_accumulate" : "lookup_grad_accumulate");
    // The last two: of lookup_grad's table only the type counts, which is the accumulator's.
    fused.inputs = {node.inputs[0], *(term->inputs.end() - 2), term->inputs.back()};
    fused.attrs = term->attrs;
    fused_[static_cast<size_t>(place)] = std::move(fused);
    absorbed_[static_cast<size_t>(n)] = true;
  }

  void MatchCrossEntropy(NodeId n, const Node& node) {
    const Node* exp = OnlyFor(node.inputs[0], node);
    const Node* pick = OnlyFor(node.inputs[1], node);
    if (exp == nullptr || pick == nullptr) return;
    if (exp->op->name == "pick_grad") std::swap(exp, pick);
    if (exp->op->name != "exp_sum_grad" || pick->op->name != "pick_grad") return;
    if (exp->inputs[0] != pick->inputs[0]) return;
    Absorb(*exp);
    Absorb(*pick);
    Replace(n, "cross_entropy_grad",
            {exp->inputs[0], exp->inputs[1], exp->inputs[2], pick->inputs[1], pick->inputs[2]}, {});
  }

  // Forward keeps the sum for backward unless it is recomputed; then bias and GELU are one pass.
  void MatchBiasGelu(NodeId n, const Node& node) {
    const Node* sum = OnlyFor(node.inputs[0], node);
    if (sum == nullptr || sum->op->name != "add" || sum->inputs.size() != 2) return;
    if (source_.type(sum->inputs[1]).ndim() != 1) return;
    Absorb(*sum);
    Replace(n, "bias_gelu", {sum->inputs[0], sum->inputs[1]}, {});
  }

  const Graph& source_;
  const std::vector<std::vector<NodeId>> users_;
  std::vector<bool> absorbed_;
  std::vector<Node> fused_;  // by node; op null where nothing changes
};

}  // namespace

Graph Fuse(const Graph& local) { return Fuser(local).Run(); }

}  // namespace mgc
