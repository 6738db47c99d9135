#include "passes/graph/assign_optimizers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/diagnostic.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"
#include "graph/ir/model_layers.h"
#include "graph/ir/op.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/step_names.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

// A product of two operands.
bool IsProduct(const Node& node) {
  return node.op->precision == Precision::kNarrow && node.inputs.size() == 2;
}

// How many of the operand's first dims are one side of a matrix: those that the product contracts,
// or those that it keeps. 0: it is none, for dims of both kinds alternate, or are in all tensors.
int SideOf(const Graph& graph, const Node& node, size_t operand) {
  const FactorRule rule = RuleOf(graph, node);
  const TensorFactors& dims = rule.operands[operand];
  const TensorFactors& others = rule.operands[1 - operand];
  std::vector<bool> contracted;
  for (const DimFactors& dim : dims) {
    if (dim.size() != 1) return 0;
    contracted.push_back(!rule.InResult(dim[0], 0));
    if (!contracted.back() && std::find(others.begin(), others.end(), dim) != others.end()) {
      return 0;
    }
  }
  const auto end = std::find(contracted.begin(), contracted.end(), !contracted.front());
  const bool two_sides = std::all_of(end, contracted.end(), [&](bool c) { return c == *end; });
  return end != contracted.end() && two_sides ? static_cast<int>(end - contracted.begin()) : 0;
}

// Of a matrix how many dims count its rows; 0 of any other parameter.
int RowDims(const Graph& graph, ValueId param, const std::vector<NodeId>& users) {
  const bool has_ends = LayersOf(graph).named;
  int side = 0;
  for (NodeId user : users) {
    const Node& node = graph.node(user);
    const bool in_layer = node.layer >= 0 && node.layer < graph.num_layers();
    if (!IsProduct(node) || (has_ends && !in_layer) || node.inputs[0] == node.inputs[1]) return 0;
    const int found = SideOf(graph, node, node.inputs[0] == param ? 0 : 1);
    if (found == 0 || (side != 0 && found != side)) return 0;
    side = found;
  }
  return side;
}

class Assignment {
 public:
  Assignment(const Graph& graph, const OptimizerConfig& config)
      : graph_(graph), users_(graph.Users()), config_(config), matched_(config.groups.size()) {}

  // Attributes of a parameter with what the configuration adds.
  Attrs Of(const GraphInput& input) {
    Attrs attrs = input.attrs;
    if (input.kind != InputKind::kParam || !IsTrained(attrs)) return attrs;
    SetOptimizer(input, &attrs);
    const std::string& name = graph_.value(input.value).name;
    trained_.push_back(name);
    double lr = attrs.Real(kRateScaleAttr, 1);
    double decay = attrs.Real(kDecayScaleAttr, 1);
    for (size_t g = 0; g < config_.groups.size(); ++g) {
      const ParamGroup& group = config_.groups[g];
      if (!Matches(group.pattern, name)) continue;
      matched_[g] = true;
      lr *= group.lr;
      decay *= group.decay;
    }
    if (lr != 1 || attrs.Find(kRateScaleAttr) != nullptr) attrs.Set(kRateScaleAttr, lr);
    if (decay != 1 || attrs.Find(kDecayScaleAttr) != nullptr) attrs.Set(kDecayScaleAttr, decay);
    return attrs;
  }

  absl::Status Check() {
    for (size_t g = 0; g < config_.groups.size(); ++g) {
      if (matched_[g]) continue;
      const std::string& pattern = config_.groups[g].pattern;
      violations_.Add(
          {"optimizer_c2",
           absl::StrCat("--param-group: no trained parameter is called ", EscapeBytes(pattern)),
           Nearest(pattern)});
    }
    const Optimizer* asked = FindOptimizer(config_.name);
    if (asked != nullptr && !asked->direction.empty() && num_matrices_ == 0) {
      violations_.Add({"optimizer_c3",
                       absl::StrCat("--optimizer ", asked->name,
                                    " steps matrices that products of layers read, and the model "
                                    "has none that is trained"),
                       std::string(asked->others)});
    }
    return violations_.ToStatus();
  }

 private:
  void SetOptimizer(const GraphInput& input, Attrs* attrs) {
    const bool own = attrs->Find(kOptimizerAttr) != nullptr;
    if (!own && config_.name.empty()) return;
    const Optimizer* optimizer = own ? &OptimizerOf(*attrs) : FindOptimizer(config_.name);
    if (!optimizer->direction.empty()) {
      const int rows = RowDims(graph_, input.value, users_[static_cast<size_t>(input.value)]);
      if (rows > 0) {
        ++num_matrices_;
        attrs->Set(kRowDimsAttr, int64_t{rows});
      } else if (own) {
        violations_.Add("optimizer_c3",
                        absl::StrCat("%", EscapeBytes(graph_.value(input.value).name)),
                        absl::StrCat("has optimizer=\"", optimizer->name,
                                     "\", and is no matrix that products of layers read"));
        return;
      } else {
        optimizer = FindOptimizer(optimizer->others);
      }
    }
    if (own || optimizer != &Optimizers()[0]) {
      attrs->Set(kOptimizerAttr, std::string(optimizer->name));
    }
  }

  // What a pattern may have meant: a name like it, or the first ones.
  std::string Nearest(absl::string_view pattern) const {
    const std::vector<absl::string_view> names(trained_.begin(), trained_.end());
    const absl::string_view near = NearestName(pattern, names);
    if (!near.empty()) return std::string(near);
    constexpr size_t kMost = 6;
    std::string text = absl::StrJoin(
        names.begin(), names.begin() + static_cast<int64_t>(std::min(kMost, names.size())), ", ");
    return names.size() > kMost ? absl::StrCat(text, ", ...") : text;
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const OptimizerConfig& config_;
  std::vector<bool> matched_;  // by group
  std::vector<std::string> trained_;
  int num_matrices_ = 0;
  Diagnostics violations_;
};

}  // namespace

absl::StatusOr<Graph> AssignOptimizers(const Graph& logical, const OptimizerConfig& config) {
  if (!config.name.empty() && FindOptimizer(config.name) == nullptr) {
    std::vector<absl::string_view> known;
    for (const Optimizer& optimizer : Optimizers()) known.push_back(optimizer.name);
    const Diagnostic unknown = {"optimizer_c1",
                                absl::StrCat("there is no optimizer ", EscapeBytes(config.name)),
                                absl::StrJoin(known, ", ")};
    return absl::InvalidArgumentError(ToString(unknown));
  }
  Assignment assignment(logical, config);
  Rewriter rewriter(logical, logical.level(), Rewriter::Inputs::kNone);
  for (GraphInput input : logical.inputs()) {
    input.attrs = assignment.Of(input);
    rewriter.CopyInput(input);
  }
  if (absl::Status status = assignment.Check(); !status.ok()) return status;
  for (const Node& node : logical.nodes()) rewriter.Copy(node);
  return std::move(rewriter).Finish();
}

}  // namespace mgc
