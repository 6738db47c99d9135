// What tables of rows come to, each compiled once. Rows say where a model's inputs lie and nothing
// else: tables that give every input the same sharding are one.

#ifndef MGC_PASSES_SEARCH_LAYOUT_COSTS_H_
#define MGC_PASSES_SEARCH_LAYOUT_COSTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/strategy_spec.h"
#include "passes/graph/dim_classes.h"
#include "passes/graph/shard/strategy.h"

namespace mgc {

// What a table of rows comes to.
struct LayoutCost {
  int64_t parameter_bytes = 0;  // of one rank of each stage together
  int64_t step_ns = 0;          // predicted
};

// The rows that cut dims of these names over tp, an earlier one first where a value has two of
// them.
StrategySpec ClassStrategy(const std::vector<std::string>& names);

// What `strategy` comes to. Errors: those of Compile.
absl::StatusOr<LayoutCost> CostOf(const Graph& model, const ModelDims& dims,
                                  const CompileOptions& options, const StrategySpec& strategy);

class LayoutCosts {
 public:
  // All outlive it.
  LayoutCosts(const Graph& model, const ModelDims& dims, const CompileOptions& options)
      : model_(model),
        dims_(dims),
        options_(options),
        sizes_(SizesOf(model)),
        names_(NamesByClass(model, DimClasses(model))) {}

  // The rows that cut these classes, by all names that their dims go by.
  StrategySpec StrategyOf(const std::vector<std::string>& classes) const;

  // The shardings of the model's inputs, as text. InvalidArgument for a configuration without mesh.
  absl::StatusOr<std::string> PlacesOf(const std::vector<std::string>& classes) const;

  // What StrategyOf(classes) comes to. Errors: those of Compile; ResourceExhausted where that is
  // not known yet and `most_plans` are compiled.
  absl::StatusOr<LayoutCost> Of(const std::vector<std::string>& classes,
                                size_t most_plans = std::numeric_limits<size_t>::max());

  size_t compiled() const { return costs_.size(); }

 private:
  const Graph& model_;
  const ModelDims& dims_;
  const CompileOptions& options_;
  const SizeByDim sizes_;
  const std::map<std::string, std::vector<std::string>> names_;  // by class
  std::map<std::string, absl::StatusOr<LayoutCost>> costs_;      // by places
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_LAYOUT_COSTS_H_
