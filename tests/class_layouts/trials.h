// The layout that is chosen for a model by its dim classes, against all that there are.

#ifndef MGC_TESTS_CLASS_LAYOUTS_TRIALS_H_
#define MGC_TESTS_CLASS_LAYOUTS_TRIALS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/search/layout_costs.h"

namespace mgc {

// A model and a mesh of h100x8.
struct LayoutCase {
  std::string file;
  std::string mesh;  // as ParseParallel reads it: `tp=4 dp=2`
};

struct LayoutTrial {
  LayoutCase of;
  size_t classes = 0;  // that tp divides
  size_t tables = 0;   // that place the model's inputs differently
  size_t refused = 0;  // of those
  LayoutCost chosen;
  LayoutCost best;  // the fastest of those that have the fewest bytes above the budget
  std::string chosen_rows;
  std::string best_rows;
  int64_t budget = 0;  // of parameter bytes

  // How much longer the chosen step takes than the best: 0.05 for 5 %.
  double Slower() const;
  bool Holds() const;  // at most 5 % slower, and no more bytes above the budget
};

// Compiles every table of rows: every list of classes, in every order, that gives the inputs other
// shardings than those before. InvalidArgument above kMostTables of them; errors of the file.
inline constexpr size_t kMostTables = size_t{1} << 12;
absl::StatusOr<LayoutTrial> TryAllTables(const LayoutCase& layout_case);

// The same for a prepared model, all but what is chosen.
absl::Status TryTables(const Graph& model, const ModelDims& dims, const CompileOptions& options,
                       LayoutTrial* trial);

// One line a trial, and the rows of those that do not hold.
std::string TrialsText(const std::vector<LayoutTrial>& trials);

// All cases: own models of this folder and of tests/own_models, on tp 2 and on tp 4 x dp 2.
std::vector<LayoutCase> AllLayoutCases();

}  // namespace mgc

#endif  // MGC_TESTS_CLASS_LAYOUTS_TRIALS_H_
