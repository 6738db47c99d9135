// A strategy for a model whose dims do not have Megatron's names: samples over dp, and tp on the
// dim classes that cut the parameters for least time, by the time that compiled plans predict.
//
//   %h = matmul(%x, %up)      row * { batch -> dp, "layers.*.up#1" -> tp }
//   %y = matmul(%h, %down)

#ifndef MGC_PASSES_SEARCH_CLASS_LAYOUT_H_
#define MGC_PASSES_SEARCH_CLASS_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/strategy_spec.h"
#include "passes/search/class_search.h"
#include "passes/search/layout_costs.h"

namespace mgc {

// A class by which tp could cut the model.
struct ClassChoice {
  std::string name;
  std::vector<std::string> names;  // that its dims go by, `name` first
  std::set<int64_t> sizes;         // of the dims of inputs that go by them: layers may differ
  int64_t parameter_bytes = 0;     // of the whole parameters that have a dim of it
  bool divides = false;            // tp divides all sizes
  // What follows only if it does: of a step in which tp cuts nothing else, or why there is none.
  LayoutCost alone;
  absl::Status refused;
};

struct ClassLayout {
  StrategySpec strategy;
  LayoutCost cost;
  int64_t budget = 0;      // of parameter bytes: ParameterBudget
  size_t plans = 0;        // that were compiled
  bool cut_short = false;  // by the limits: more tables could have been tried
};

// The classes that parameters have dims of, in the order of the model; samples are not among them.
// `model` has names for all dims (NameDims). Errors: those of Compile that are no refusals.
absl::StatusOr<std::vector<ClassChoice>> ClassChoices(const Graph& model, const ModelDims& dims,
                                                      const CompileOptions& options);

// Whether the strategy's rows cut some parameter over tp.
absl::StatusOr<bool> CutsParameters(const Graph& model, const ParallelConfig& config,
                                    const StrategySpec& strategy);

// Bytes of parameters that a rank may hold: 1.1 times its share of those that some class lets tp
// cut, and the others whole.
int64_t ParameterBudget(const Graph& model, const std::vector<ClassChoice>& choices, int64_t tp);

// The rows of the classes that SearchClasses finds for ParameterBudget, and rows that change the
// layout inside a layer where that saves time (passes/search/home_rows.h). Of more than 24 classes
// those of the same sizes that only digits in their names tell apart are chosen together. Errors:
// those of Compile where all is refused; InvalidArgument when tp divides no class of any parameter,
// naming them, unless the configuration allows replication: then nothing is cut. [strategy_c5]
absl::StatusOr<ClassLayout> LayOutByClasses(const Graph& model, const ModelDims& dims,
                                            const CompileOptions& options,
                                            const SearchLimits& limits = {});

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_CLASS_LAYOUT_H_
