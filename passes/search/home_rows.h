// Layouts that change inside a layer: rows that bring what is passed on from layer to layer to cuts
// of its own, as sequence parallelism does (arXiv 2205.05198, 4.2.2), where that saves time.
//
//   rows * { heads -> tp, mlp -> tp }   ->   row (b, s, e) home { s -> tp }
//                                            rows * { heads -> tp, mlp -> tp }
//
// Between the products of a layer a value that several nodes read is whole on all ranks of tp, and
// each of them does the same with it. Cut there, it is summed by a reduce-scatter and gathered in
// front of the next product: as much is communicated, and what lies between takes a share of the
// time and of the memory.

#ifndef MGC_PASSES_SEARCH_HOME_ROWS_H_
#define MGC_PASSES_SEARCH_HOME_ROWS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/strategy_spec.h"
#include "passes/search/layout_costs.h"

namespace mgc {

// The names of all dims, for each kind of value that nodes make and more than one reads; in the
// order of the model. `model` has names for all dims (NameDims).
std::vector<std::vector<std::string>> SharedPatterns(const Graph& model);

struct HomeRows {
  StrategySpec strategy;  // with the rows in front of those that it had
  LayoutCost cost;
  size_t plans = 0;  // that were compiled
};

// For every pattern in turn the dim that tp divides and that makes a step of `options` fastest, if
// one makes it faster. `cost`: of `strategy` as it is. What is refused is passed over; other errors
// are those of Compile. At most `most_plans` are compiled.
absl::StatusOr<HomeRows> AddHomeRows(const Graph& model, const ModelDims& dims,
                                     const CompileOptions& options, StrategySpec strategy,
                                     const LayoutCost& cost, size_t most_plans);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_HOME_ROWS_H_
