#include "passes/search/home_rows.h"

#include <algorithm>
#include <utility>

#include "graph/base/status.h"

namespace mgc {
namespace {

std::vector<std::string> NamesOfDims(const TensorType& type) {
  std::vector<std::string> names;
  for (const Dim& dim : type.dims) names.push_back(dim.name);
  return names;
}

StrategyRowSpec HomeRow(const std::vector<std::string>& pattern, const std::string& dim) {
  StrategyRowSpec row;
  row.pattern = pattern;
  row.home = true;
  row.dims.push_back({dim, {"tp"}});
  return row;
}

}  // namespace

std::vector<std::vector<std::string>> SharedPatterns(const Graph& model) {
  std::vector<int> readers(model.values().size(), 0);
  for (const Node& node : model.nodes()) {
    for (const ValueId id : node.inputs) ++readers[static_cast<size_t>(id)];
  }
  std::vector<std::vector<std::string>> patterns;
  for (size_t v = 0; v < readers.size(); ++v) {
    const Value& value = model.values()[v];
    if (readers[v] < 2 || value.producer == kNone || value.type.dims.size() < 2) continue;
    std::vector<std::string> names = NamesOfDims(value.type);
    const bool is_new = std::find(patterns.begin(), patterns.end(), names) == patterns.end();
    if (is_new) patterns.push_back(std::move(names));
  }
  return patterns;
}

absl::StatusOr<HomeRows> AddHomeRows(const Graph& model, const ModelDims& dims,
                                     const CompileOptions& options, StrategySpec strategy,
                                     const LayoutCost& cost, size_t most_plans) {
  HomeRows best{std::move(strategy), cost, 0};
  const SizeByDim sizes = SizesOf(model);
  const auto divides = [&](const std::string& dim) {
    const auto known = sizes.find(dim);
    return dim != kSampleDim && known != sizes.end() && known->second % options.parallel.tp == 0;
  };
  for (const std::vector<std::string>& pattern : SharedPatterns(model)) {
    const StrategySpec without = best.strategy;
    for (const std::string& dim : pattern) {
      if (!divides(dim) || best.plans >= most_plans) continue;
      StrategySpec with = without;
      with.rows.insert(with.rows.begin(), HomeRow(pattern, dim));
      ++best.plans;
      const absl::StatusOr<LayoutCost> found = CostOf(model, dims, options, with);
      if (!found.ok() && !IsRefusal(found.status())) return found.status();
      if (!found.ok() || found->step_ns >= best.cost.step_ns ||
          found->parameter_bytes > best.cost.parameter_bytes) {
        continue;
      }
      best.strategy = std::move(with);
      best.cost = *found;
    }
  }
  return best;
}

}  // namespace mgc
