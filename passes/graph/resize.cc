#include "passes/graph/resize.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/ir/retype.h"
#include "graph/ir/step_names.h"
#include "graph/plan/data_input.h"
#include "graph/types/factor_rule.h"
#include "graph/types/layer_names.h"
#include "passes/config/nearest_legal.h"
#include "passes/graph/dim_classes.h"

namespace mgc {
namespace {

// What a model without a text calls the tokens of a sample.
constexpr char kTokenDim[] = "seq";

std::vector<const TensorType*> PointersTo(const std::vector<TensorType>& types) {
  std::vector<const TensorType*> pointers;
  pointers.reserve(types.size());
  for (const TensorType& type : types) pointers.push_back(&type);
  return pointers;
}

// Numbers that a model may have written down of a size: itself, and how many elements the first
// dims of data have together, as far as it is one of them.
std::set<int64_t> CountsWith(const Graph& model, const FreeDim& dim) {
  std::set<int64_t> counts = {dim.size};
  for (const GraphInput& input : model.inputs()) {
    if (input.kind != InputKind::kData) continue;
    int64_t count = 1;
    bool has = false;
    for (const Dim& of_input : model.type(input.value).dims) {
      count *= of_input.size;
      has |= of_input.name == dim.name;
      if (has) counts.insert(count);
    }
  }
  counts.erase(1);
  return counts;
}

// The size of every dim when one of them changes.
class NewSizes {
 public:
  NewSizes(const Graph& model, const FreeDim& dim, int64_t size) : model_(model), classes_(model) {
    for (const Node& node : model.nodes()) rules_.push_back(RuleOf(model, node));
    for (const DimClass& c : classes_.classes()) sizes_.push_back(c.size);
    SetNamed(dim, size);
    while (changed_) {
      changed_ = false;
      for (size_t n = 0; n < rules_.size(); ++n) {
        FollowFactors(model_.nodes()[n], rules_[n]);
        FollowInference(model_.nodes()[n]);
      }
    }
  }

  const FactorRule& rule(size_t node) const { return rules_[node]; }

  int64_t SizeAt(ValueId value, size_t dim) const { return sizes_[ClassAt(value, dim)]; }
  bool ChangesAt(ValueId value, size_t dim) const {
    return SizeAt(value, dim) != model_.type(value).dims[dim].size;
  }
  TensorType TypeOf(ValueId value) const {
    TensorType type = model_.type(value);
    for (size_t d = 0; d < type.dims.size(); ++d) type.dims[d].size = SizeAt(value, d);
    return type;
  }
  std::vector<TensorType> TypesOf(const std::vector<ValueId>& values) const {
    std::vector<TensorType> types;
    for (ValueId value : values) types.push_back(TypeOf(value));
    return types;
  }

 private:
  size_t ClassAt(ValueId value, size_t dim) const {
    return static_cast<size_t>(&classes_.Of(value, static_cast<int>(dim)) -
                               classes_.classes().data());
  }

  // A class changes once. What would change it again is found when its node is checked.
  void Set(ValueId value, size_t dim, int64_t size) {
    if (ChangesAt(value, dim) || SizeAt(value, dim) == size) return;
    sizes_[ClassAt(value, dim)] = size;
    changed_ = true;
  }

  void SetNamed(const FreeDim& dim, int64_t size) {
    for (size_t v = 0; v < model_.values().size(); ++v) {
      const std::vector<Dim>& dims = model_.values()[v].type.dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d].name == dim.name && dims[d].size == dim.size) {
          Set(static_cast<ValueId>(v), d, size);
        }
      }
    }
  }

  // Calls `visit(value, factors of its dims)` for every operand and result.
  template <typename Visit>
  static void VisitTensors(const Node& node, const FactorRule& rule, const Visit& visit) {
    for (size_t i = 0; i < node.inputs.size(); ++i) visit(node.inputs[i], rule.operands[i]);
    for (size_t r = 0; r < node.outputs.size(); ++r) visit(node.outputs[r], rule.results[r]);
  }

  // A dim of several factors is as long as their product.
  void FollowFactors(const Node& node, const FactorRule& rule) {
    std::vector<int64_t> sizes;
    for (const Factor& factor : rule.factors) sizes.push_back(factor.size);
    VisitTensors(node, rule, [&](ValueId value, const TensorFactors& factors) {
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d].size() != 1) continue;
        sizes[static_cast<size_t>(factors[d][0])] = SizeAt(value, d);
      }
    });
    VisitTensors(node, rule, [&](ValueId value, const TensorFactors& factors) {
      for (size_t d = 0; d < factors.size(); ++d) {
        if (factors[d].size() < 2) continue;
        int64_t product = 1;
        for (int f : factors[d]) {
          product = SaturatingMultiply(product, sizes[static_cast<size_t>(f)]);
        }
        Set(value, d, std::min(product, kMaxElements + 1));
      }
    });
  }

  // Where no attribute states sizes of results they are those that the op makes, as a concat does.
  void FollowInference(const Node& node) {
    if (node.op->resized && !node.op->Has(OpRole::kRange)) return;
    const std::vector<TensorType> operands = TypesOf(node.inputs);
    const auto made = InferTypes(*node.op, node.attrs, PointersTo(operands));
    if (!made.ok()) return;  // found when the node is checked
    for (size_t r = 0; r < node.outputs.size(); ++r) {
      for (size_t d = 0; d < (*made)[r].dims.size(); ++d) {
        Set(node.outputs[r], d, (*made)[r].dims[d].size);
      }
    }
  }

  const Graph& model_;
  const DimClasses classes_;
  std::vector<FactorRule> rules_;  // by node
  std::vector<int64_t> sizes_;     // by class
  bool changed_ = false;
};

// Checks the model at new sizes, and makes it.
class Resizer {
 public:
  // size <= kMaxElements
  Resizer(const Graph& model, const FreeDim& dim, int64_t size, absl::string_view label)
      : model_(model), dim_(dim), size_(size), label_(label), sizes_(model, dim, size) {}

  Resized Run() {
    if (!FitsAll()) return std::move(resized_);
    CheckParameters();
    CheckRanges();
    CheckPositions();
    if (resized_.violations.empty()) CheckNodes();
    if (!resized_.violations.empty()) return std::move(resized_);
    NoteConstants();
    absl::StatusOr<Graph> graph = Retype(model_, [this](ValueId id) { return sizes_.TypeOf(id); });
    MGC_CHECK(graph.ok()) << graph.status().ToString();  // all nodes have been checked
    resized_.graph = *std::move(graph);
    return std::move(resized_);
  }

 private:
  void Bind(const std::string& why, absl::string_view value) {
    resized_.violations.Add({label_,
                             absl::StrCat("`", EscapeBytes(dim_.name), "` is ", dim_.size,
                                          " in the graph and cannot be ", size_, ": ", why),
                             "", value.empty() ? "" : absl::StrCat("%", EscapeBytes(value))});
  }

  // Whether every value stays a legal one; no op is asked for its results otherwise.
  bool FitsAll() {
    for (size_t v = 0; v < model_.values().size(); ++v) {
      int64_t elements = 1;
      for (const Dim& dim : sizes_.TypeOf(static_cast<ValueId>(v)).dims) {
        elements = SaturatingMultiply(elements, dim.size);
      }
      if (elements <= kMaxElements) continue;
      Bind("this value would have more than 2^50 elements", model_.values()[v].name);
      return false;
    }
    return true;
  }

  void CheckParameters() {
    for (const GraphInput& input : model_.inputs()) {
      const TensorType& type = model_.type(input.value);
      if (input.kind != InputKind::kParam || sizes_.TypeOf(input.value) == type) continue;
      Bind(absl::StrCat("this parameter is ", EscapeBytes(type.ToString())),
           model_.value(input.value).name);
    }
  }

  // A range that ends where the dim does: whether that end moves, nothing says.
  void CheckRanges() {
    for (const Node& node : model_.nodes()) {
      if (!node.op->Has(OpRole::kRange)) continue;
      const size_t dim = static_cast<size_t>(node.attrs.Int(kDimAttr));
      const int64_t size = model_.type(node.inputs[0]).dims[dim].size;
      if (node.attrs.Int(kEndAttr) != size || !sizes_.ChangesAt(node.inputs[0], dim)) continue;
      Bind(absl::StrCat("this ", node.op->name, " takes [", node.attrs.Int(kBeginAttr), ", ", size,
                        "), up to the end"),
           model_.value(node.outputs[0]).name);
    }
  }

  // Positions that would be looked up behind the last row of a table.
  void CheckPositions() {
    for (size_t n = 0; n < model_.nodes().size(); ++n) {
      const Node& node = model_.nodes()[n];
      for (int operand : node.op->index_operands) {
        const ValueId positions = PositionsBehind(node.inputs[static_cast<size_t>(operand)]);
        if (positions == kNone || !sizes_.ChangesAt(positions, 0)) continue;
        for (size_t d = 0; d < sizes_.rule(n).operands[0].size(); ++d) {
          const DimFactors& factors = sizes_.rule(n).operands[0][d];
          if (factors.size() != 1 || sizes_.rule(n).InResult(factors[0], 0)) continue;
          if (sizes_.SizeAt(node.inputs[0], d) >= sizes_.SizeAt(positions, 0)) continue;
          const Value& table = model_.value(node.inputs[0]);
          Bind(absl::StrCat("this ", node.op->name, " takes a row for each from %",
                            EscapeBytes(table.name), ", which has ",
                            sizes_.SizeAt(node.inputs[0], d)),
               model_.value(node.outputs[0]).name);
        }
      }
    }
  }

  // The positions 0, 1, ... of a dim that `indices` are copies of, or kNone.
  ValueId PositionsBehind(ValueId indices) const {
    while (true) {
      const Value& value = model_.value(indices);
      if (value.producer == kNone) return kNone;
      const Node& node = model_.node(value.producer);
      if (node.inputs.empty()) return value.type.dims.size() == 1 ? indices : kNone;
      if (node.inputs.size() > 1 || !node.op->resized) return kNone;
      indices = node.inputs[0];
    }
  }

  void CheckNodes() {
    for (const Node& node : model_.nodes()) {
      const std::vector<TensorType> operands = sizes_.TypesOf(node.inputs);
      const std::vector<TensorType> results = sizes_.TypesOf(node.outputs);
      // A range stays where it is, also where it could grow with its part.
      const Attrs attrs = node.op->Has(OpRole::kRange)
                              ? node.attrs
                              : RetypedAttrs(*node.op, node.attrs, PointersTo(results));
      const absl::Status makes =
          CheckMakes(*node.op, OpUse{attrs, PointersTo(operands), PointersTo(results)});
      if (makes.ok()) continue;
      Bind(std::string(makes.message()),
           node.outputs.empty() ? "" : model_.value(node.outputs[0]).name);
    }
  }

  void NoteConstants() {
    const std::set<int64_t> counts = CountsWith(model_, dim_);
    for (const Node& node : model_.nodes()) {
      const AttrValue* attr = node.inputs.empty() ? node.attrs.Find("value") : nullptr;
      const double* value = attr == nullptr ? nullptr : std::get_if<double>(attr);
      if (value == nullptr) continue;
      for (const int64_t count : counts) {
        const double n = static_cast<double>(count);
        const bool inverse = std::abs(*value * n - 1) < 1e-4;
        if (*value != n && !inverse) continue;
        NoteConstant(node, *value, inverse ? absl::StrCat(", 1 / ", count) : "");
        break;
      }
    }
  }

  // Once for all layers.
  void NoteConstant(const Node& node, double value, const std::string& as) {
    const std::string name =
        FoldName(model_.value(node.outputs[0]).name, node.layer, model_.num_layers());
    std::string note = absl::StrCat("%", EscapeBytes(name), " stays ", value, as, ", as it is for ",
                                    EscapeBytes(dim_.name), "=", dim_.size);
    std::vector<std::string>& notes = resized_.notes;
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
      notes.push_back(std::move(note));
    }
  }

  const Graph& model_;
  const FreeDim& dim_;
  const int64_t size_;
  const std::string label_;
  const NewSizes sizes_;
  Resized resized_;
};

}  // namespace

FreeDim SamplesOf(const Graph& model) {
  for (const GraphInput& input : model.inputs()) {
    const std::vector<Dim>& dims = model.type(input.value).dims;
    if (input.kind == InputKind::kData && !dims.empty()) return {dims[0].name, dims[0].size};
  }
  return {};
}

FreeDim TokensOf(const Graph& model) {
  if (TokensPerSample(model) > 0) {
    for (const char* name : {kTokensInput, kTargetsInput}) {
      const ValueId value = model.FindValue(name);
      if (value == kNone || model.type(value).dims.size() != 2) continue;
      const Dim& dim = model.type(value).dims[1];
      if (dim.size == TokensPerSample(model)) return {dim.name, dim.size};
    }
  }
  FreeDim tokens{kTokenDim, 0};
  for (const Value& value : model.values()) {
    for (const Dim& dim : value.type.dims) {
      if (dim.name == tokens.name) tokens.size = std::max(tokens.size, dim.size);
    }
  }
  return tokens;
}

Resized Resize(const Graph& model, const FreeDim& dim, int64_t size, absl::string_view label) {
  if (dim.size == size || dim.size == 0) return {model, {}, {}};
  if (size > kMaxElements) {
    Resized refused;
    refused.violations.Add(
        {std::string(label),
         absl::StrCat("`", EscapeBytes(dim.name), "` is ", dim.size, " in the graph and cannot be ",
                      size, ": no value may have more than 2^50 elements")});
    return refused;
  }
  return Resizer(model, dim, size, label).Run();
}

Resized Resize(const Graph& model, int64_t samples, int64_t tokens) {
  Resized resized = Resize(model, SamplesOf(model), samples, "T1");
  // What binds the samples says nothing of the tokens: both are reported.
  Resized both =
      Resize(resized.graph.has_value() ? *resized.graph : model, TokensOf(model), tokens, "T2");
  both.notes.insert(both.notes.begin(), resized.notes.begin(), resized.notes.end());
  Diagnostics violations = resized.violations;
  violations.Append(both.violations);
  both.violations = std::move(violations);
  if (!both.violations.empty()) both.graph.reset();
  return both;
}

}  // namespace mgc
