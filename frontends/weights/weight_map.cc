#include "frontends/weights/weight_map.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "frontends/families.h"
#include "frontends/models.h"
#include "frontends/weights/weight_table.h"
#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/types/tensor_type.h"

namespace mgc {
namespace {

using Shape = std::vector<int64_t>;
using Digit = StridedView::Digit;

int64_t Product(absl::Span<const int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product *= size;
  return product;
}

// Digits that run through `sizes` row by row, elements `unit` apart.
void Append(absl::Span<const int64_t> sizes, int64_t unit, std::vector<Digit>* digits) {
  int64_t stride = unit * Product(sizes);
  for (int64_t size : sizes) {
    stride /= size;
    digits->push_back({size, stride});
  }
}

// One tensor of a row, of parameters that have `inputs` dims of their own to sum over.
struct Fused {
  const WeightRow& row;
  int inputs;
  const ImageSizes& image;

  Shape Inputs(const ParameterPart& part) const {
    return {part.shape.begin(), part.shape.begin() + inputs};
  }
  Shape Outputs(const ParameterPart& part) const {
    return {part.shape.begin() + inputs, part.shape.end()};
  }
};

StridedView ViewOf(const Fused& fused, const ParameterPart& part, int64_t before, int64_t all,
                   size_t parts) {
  const Shape in = fused.Inputs(part);
  const Shape out = fused.Outputs(part);
  StridedView view;
  switch (fused.row.layout) {
    case WeightLayout::kStored:
      Append(in, all, &view.digits);
      Append(out, 1, &view.digits);
      view.begin = before;
      break;
    case WeightLayout::kLinear:
    case WeightLayout::kPatches:
      Append(in, 1, &view.digits);
      Append(out, Product(in), &view.digits);
      view.begin = before * Product(in);
      break;
    case WeightLayout::kByHead: {  // outputs are [heads, head_dim]
      const int64_t unit = Product(in);
      Append(in, 1, &view.digits);
      view.digits.push_back({out[0], static_cast<int64_t>(parts) * out[1] * unit});
      view.digits.push_back({out[1], unit});
      view.begin = before / out[0] * unit;
      break;
    }
  }
  return view;
}

Shape ShapeOf(const Fused& fused, const ParameterPart& first, int64_t outputs) {
  Shape shape(static_cast<size_t>(fused.row.ones), 1);
  const int64_t inputs = Product(fused.Inputs(first));
  if (fused.inputs == 0) {
    shape.push_back(outputs);
  } else if (fused.row.layout == WeightLayout::kStored) {
    shape.insert(shape.end(), {inputs, outputs});
  } else if (fused.row.layout == WeightLayout::kPatches) {
    const int64_t side = fused.image.patch;
    shape.insert(shape.end(), {outputs, fused.image.channels, side, side});
  } else {
    shape.insert(shape.end(), {outputs, inputs});
  }
  return shape;
}

using Shapes = std::map<std::string, Shape>;

absl::StatusOr<Shapes> ShapesOfParameters(const ModelConfig& config,
                                          const ModelOptions& options = {}) {
  const int64_t seq = TraitsOf(config.family).images ? config.max_positions : 1;
  MGC_ASSIGN_OR_RETURN(const Graph graph, BuildModel(config, 1, seq, options));
  Shapes shapes;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    shapes[graph.value(input.value).name] = SizesOf(graph.type(input.value));
  }
  return shapes;
}

// Makes the map's tensors, and takes what they hold out of `left`.
class MapWriter {
 public:
  MapWriter(const ModelConfig& config, bool norms_add_one, Shapes* left, WeightMap* map)
      : config_(config), norms_add_one_(norms_add_one), left_(*left), map_(*map) {}

  void Add(const WeightRow& row) {
    ForEachLayer(
        row, [&](const std::string& name, const std::string& scope) { AddOf(row, name, scope); });
  }

  // The two tensors of an adapter, whichever way round the weight that it stands beside lies.
  void AddAdapter(const WeightRow& row) {
    WeightRow a = row;
    std::fill(std::begin(a.parameters) + 1, std::end(a.parameters), nullptr);
    a.layout = WeightLayout::kLinear;
    WeightRow b = row;
    if (b.layout == WeightLayout::kStored) b.layout = WeightLayout::kLinear;
    ForEachLayer(row, [&](const std::string& name, const std::string& scope) {
      const std::string module = absl::StrCat("base_model.model.", name);
      AddTensor(a, row.inputs, absl::StrCat(module, ".lora_A.weight"), scope,
                absl::StrCat(".", kAdapterA));
      AddTensor(b, 1, absl::StrCat(module, ".lora_B.weight"), scope, absl::StrCat(".", kAdapterB));
    });
  }

 private:
  void ForEachLayer(const WeightRow& row,
                    absl::FunctionRef<void(const std::string&, const std::string&)> fn) {
    if (absl::string_view(row.name).find('*') == absl::string_view::npos) return fn(row.name, "");
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      fn(absl::StrReplaceAll(row.name, {{"*", absl::StrCat(layer)}}),
         absl::StrCat("layers.", layer, "."));
    }
  }

  void AddOf(const WeightRow& row, const std::string& name, const std::string& scope) {
    if (row.exact) return AddTensor(row, row.inputs, name, scope, "");
    AddTensor(row, row.inputs, absl::StrCat(name, ".weight"), scope, "");
    AddTensor(row, 0, absl::StrCat(name, ".bias"), scope, ".bias");
  }

  void AddTensor(const WeightRow& row, int inputs, std::string name, const std::string& scope,
                 absl::string_view ending) {
    FileTensor tensor;
    tensor.name = std::move(name);
    for (const char* parameter : row.parameters) {
      if (parameter == nullptr) continue;
      const auto found = left_.find(absl::StrCat(scope, parameter, ending));
      if (found == left_.end()) return;
      tensor.parts.push_back({found->first, found->second, {}, 0});
      if (norms_add_one_ && row.is_norm) tensor.parts.back().added = 1;
    }
    const Fused fused{row, inputs, config_.image};
    int64_t outputs = 0;
    for (const ParameterPart& part : tensor.parts) outputs += Product(fused.Outputs(part));
    int64_t before = 0;
    for (ParameterPart& part : tensor.parts) {
      part.view = ViewOf(fused, part, before, outputs, tensor.parts.size());
      before += Product(fused.Outputs(part));
      left_.erase(part.parameter);
    }
    tensor.shape = ShapeOf(fused, tensor.parts[0], outputs);
    map_.tensors.push_back(std::move(tensor));
  }

  const ModelConfig& config_;
  const bool norms_add_one_;
  Shapes& left_;
  WeightMap& map_;
};

}  // namespace

absl::StatusOr<WeightMap> WeightMapOf(const ModelConfig& config) {
  MGC_ASSIGN_OR_RETURN(Shapes left, ShapesOfParameters(config));
  const FamilyWeights& weights = WeightsOf(config.family);
  WeightMap map;
  map.prefix = weights.prefix;
  MapWriter writer(config, weights.norms_add_one, &left, &map);
  for (const WeightRow& row : weights.rows) writer.Add(row);
  if (!left.empty()) {
    return absl::InternalError(absl::StrCat("no file of ", TraitsOf(config.family).model_type,
                                            " has ", left.begin()->first));
  }
  for (const WeightRule& rule : weights.ignored) map.ignored.push_back({rule.ending, rule.reason});
  if (config.tie_embeddings) {
    map.ignored.push_back({weights.tied_head, "tied to the word embedding"});
  }
  if (weights.old_norms) map.old_endings = {{".gamma", ".weight"}, {".beta", ".bias"}};
  return map;
}

absl::StatusOr<WeightMap> AdapterMapOf(const ModelConfig& config, const AdapterOptions& adapter) {
  ModelOptions options;
  options.adapter = adapter;
  MGC_ASSIGN_OR_RETURN(Shapes left, ShapesOfParameters(config, options));
  WeightMap map;
  MapWriter writer(config, /*norms_add_one=*/false, &left, &map);
  for (const WeightRow& row : WeightsOf(config.family).rows) {
    if (IsLinear(row)) writer.AddAdapter(row);
  }
  return map;
}

absl::StatusOr<std::vector<AdaptedParameter>> AdaptedParameters(const ModelConfig& config,
                                                                const AdapterOptions& adapter) {
  ModelOptions options;
  options.adapter = adapter;
  MGC_ASSIGN_OR_RETURN(const Shapes shapes, ShapesOfParameters(config, options));
  std::vector<AdaptedParameter> adapted;
  for (const auto& [name, shape] : shapes) {
    const absl::optional<AdapterOptions::Place> place = adapter.PlaceOf(name);
    if (!place.has_value()) continue;
    adapted.push_back(
        {name, absl::StrCat(place->owner, ".", kAdapterA), absl::StrCat(name, ".", kAdapterB)});
  }
  return adapted;
}

}  // namespace mgc
