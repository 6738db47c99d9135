// A strategy for a model whose dims do not have Megatron's names: samples over dp, and tp on the
// dim classes that cut the parameters for least time, by the time that compiled plans predict.
//
//   %h = matmul(%x, %up)      row * { batch -> dp, "layers.*.up#1" -> tp }
//   %y = matmul(%h, %down)

#ifndef MGC_PASSES_SEARCH_CLASS_LAYOUT_H_
#define MGC_PASSES_SEARCH_CLASS_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

// What a table of rows comes to.
struct LayoutCost {
  int64_t parameter_bytes = 0;  // of one rank of each stage together
  int64_t step_ns = 0;          // predicted
};

// A class by which tp could cut the model.
struct ClassChoice {
  std::string name;
  int64_t size = 0;
  int64_t parameter_bytes = 0;  // of the whole parameters that have a dim of it
  bool divides = false;         // tp divides it
  LayoutCost alone;             // of a step in which tp cuts nothing else; only if it divides
};

struct ClassLayout {
  StrategySpec strategy;
  LayoutCost cost;
};

// The classes that parameters have dims of, in the order of the model; samples are not among them.
// `model` has names for all dims (NameDims). Errors: those of Compile.
absl::StatusOr<std::vector<ClassChoice>> ClassChoices(const Graph& model, const ModelDims& dims,
                                                      const CompileOptions& options);

// The rows that cut these classes over tp, an earlier one first where a value has two of them.
StrategySpec ClassStrategy(const std::vector<std::string>& classes);

// Whether the strategy's rows cut some parameter over tp.
absl::StatusOr<bool> CutsParameters(const Graph& model, const ParallelConfig& config,
                                    const StrategySpec& strategy);

// What `strategy` comes to. Errors: those of Compile.
absl::StatusOr<LayoutCost> CostOf(const Graph& model, const ModelDims& dims,
                                  const CompileOptions& options, const StrategySpec& strategy);

// Bytes of parameters that a rank may hold: 1.1 times its share of those that some class lets tp
// cut, and the others whole.
int64_t ParameterBudget(const Graph& model, const std::vector<ClassChoice>& choices, int64_t tp);

// Chooses among the classes: first the bytes above the budget count, then time. Adds the best class
// as long as one helps, then tries to leave one out and to exchange two. Errors: those of Compile;
// InvalidArgument when tp divides no class of any parameter, naming them. [strategy_c5]
absl::StatusOr<ClassLayout> LayOutByClasses(const Graph& model, const ModelDims& dims,
                                            const CompileOptions& options);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_CLASS_LAYOUT_H_
