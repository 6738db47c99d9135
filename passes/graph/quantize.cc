#include "passes/graph/quantize.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/weights/quantized.h"
#include "passes/graph/rewrite.h"

namespace mgc {
namespace {

constexpr int kWeight = 1;  // the operand of a product that may be quantized

// The dims of a weight that count its channels.
struct Channels {
  int first = 0;
  int count = 0;

  friend bool operator==(const Channels& a, const Channels& b) {
    return a.first == b.first && a.count == b.count;
  }
};

// None where the dims of the result that the weight alone has are not its last ones, in the
// weight's order and side by side there.
absl::optional<Channels> ChannelsOf(const Graph& model, const Node& product) {
  const FactorRule rule = RuleOf(model, product);
  const TensorFactors& weight = rule.operands[kWeight];
  const TensorFactors& result = rule.results[0];
  const TensorFactors& other = rule.operands[0];
  const auto is_channel = [&](const DimFactors& dim) {
    return std::find(other.begin(), other.end(), dim) == other.end();
  };
  const auto first = std::find_if(weight.begin(), weight.end(), is_channel);
  const auto end = std::find_if_not(first, weight.end(), is_channel);
  const auto count = end - first;
  const bool are_all = count > 0 && std::none_of(end, weight.end(), is_channel);
  if (!are_all || count > static_cast<int64_t>(result.size())) return absl::nullopt;
  if (!std::equal(first, end, result.end() - count)) return absl::nullopt;
  return Channels{static_cast<int>(first - weight.begin()), static_cast<int>(count)};
}

class Quantizing {
 public:
  explicit Quantizing(const Graph& model)
      : model_(model), made_(model, model.level(), Rewriter::Inputs::kNone) {
    for (const Node& node : model.nodes()) {
      const absl::optional<Channels> channels = ChannelsOfWeight(node);
      if (channels.has_value()) channels_.emplace(node.inputs[kWeight], *channels);
    }
    for (const Node& node : model.nodes()) {
      const bool quantized = IsQuantized(node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!quantized || i != kWeight) stays_.insert(node.inputs[i]);
      }
    }
    for (const GraphOutput& output : model.outputs()) stays_.insert(output.value);
  }

  bool FindsAny() const { return !channels_.empty(); }

  absl::StatusOr<Graph> Run() {
    for (const GraphInput& input : model_.inputs()) {
      const auto channels = channels_.find(input.value);
      if (channels == channels_.end() || stays_.count(input.value) != 0) made_.CopyInput(input);
      if (channels == channels_.end()) continue;
      MGC_RETURN_IF_ERROR(AddQuantized(input, channels->second));
    }
    for (const Node& node : model_.nodes()) {
      if (!IsQuantized(node)) {
        made_.Copy(node);
        continue;
      }
      MGC_RETURN_IF_ERROR(AddProduct(node));
    }
    return std::move(made_).Finish();
  }

 private:
  struct Quantized {
    ValueId numbers = kNone;
    ValueId scale = kNone;
  };

  // Of a product whose right side is a parameter of f32.
  absl::optional<Channels> ChannelsOfWeight(const Node& node) const {
    const bool is_product = node.op->precision == Precision::kNarrow && node.inputs.size() == 2;
    if (!is_product) return absl::nullopt;
    const GraphInput* input = model_.FindInput(node.inputs[kWeight]);
    const bool is_weight = input != nullptr && input->kind == InputKind::kParam &&
                           model_.type(input->value).dtype == DType::kF32;
    return is_weight ? ChannelsOf(model_, node) : absl::nullopt;
  }

  bool IsQuantized(const Node& node) const {
    const absl::optional<Channels> channels = ChannelsOfWeight(node);
    if (!channels.has_value()) return false;
    const auto found = channels_.find(node.inputs[kWeight]);
    return found != channels_.end() && found->second == *channels;
  }

  absl::Status AddQuantized(const GraphInput& input, const Channels& channels) {
    const Value& weight = model_.value(input.value);
    TensorType numbers = weight.type;
    numbers.dtype = DType::kI8;
    TensorType scale = weight.type;
    const auto first = weight.type.dims.begin() + channels.first;
    scale.dims.assign(first, first + channels.count);
    for (const char* suffix : {kQuantizedSuffix, kScaleSuffix}) {
      const std::string name = absl::StrCat(weight.name, suffix);
      if (model_.FindValue(name) == kNone) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("%", EscapeBytes(name), " is no name for what becomes of %",
                       EscapeBytes(weight.name), ": the model has it [quantize_c3]"));
    }
    Attrs attrs = input.attrs;
    Quantized& quantized = quantized_[input.value];
    quantized.scale = made_.builder().AddInput(absl::StrCat(weight.name, kScaleSuffix), scale,
                                               input.kind, input.attrs);
    attrs.Set(kChannelsAttr, int64_t{channels.first});
    quantized.numbers = made_.builder().AddInput(absl::StrCat(weight.name, kQuantizedSuffix),
                                                 numbers, input.kind, attrs);
    return absl::OkStatus();
  }

  absl::Status AddProduct(const Node& node) {
    const Quantized& weight = quantized_.at(node.inputs[kWeight]);
    MGC_ASSIGN_OR_RETURN(
        const std::vector<ValueId> made,
        made_.builder().Append("scaled_matmul",
                               {made_.Mapped(node.inputs[0]), weight.numbers, weight.scale},
                               node.attrs, node, {model_.value(node.outputs[0]).name}));
    made_.Map(node.outputs[0], made[0]);
    return absl::OkStatus();
  }

  const Graph& model_;
  Rewriter made_;
  std::map<ValueId, Channels> channels_;    // of weights that are quantized
  std::set<ValueId> stays_;                 // what something else reads
  std::map<ValueId, Quantized> quantized_;  // by old value
};

}  // namespace

absl::StatusOr<Graph> Quantize(const Graph& model) {
  for (const GraphInput& input : model.inputs()) {
    if (input.kind != InputKind::kParam || !IsTrained(input.attrs)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("%", EscapeBytes(model.value(input.value).name),
                     " is trained: weights are quantized of models that nothing trains "
                     "[quantize_c1]"));
  }
  Quantizing quantizing(model);
  if (quantizing.FindsAny()) return quantizing.Run();
  return absl::InvalidArgumentError(
      "no product of the model has a parameter on its right whose channels are the last dims of "
      "the result [quantize_c2]");
}

}  // namespace mgc
