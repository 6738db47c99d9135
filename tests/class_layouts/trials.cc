#include "tests/class_layouts/trials.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/text/parser.h"
#include "passes/compile.h"
#include "passes/search/class_layout.h"
#include "tests/filetest/pass_runner.h"

namespace mgc {
namespace {

constexpr size_t kMostClasses = 7;  // 13,700 lists, most of which place alike

// Every list of some of these, in every order.
void AppendLists(const std::vector<std::string>& classes, std::vector<std::string> list,
                 std::vector<std::vector<std::string>>* lists) {
  lists->push_back(list);
  for (const std::string& next : classes) {
    if (std::find(list.begin(), list.end(), next) != list.end()) continue;
    list.push_back(next);
    AppendLists(classes, list, lists);
    list.pop_back();
  }
}

// One list for each way to place the inputs.
absl::StatusOr<std::vector<std::vector<std::string>>> TablesOf(
    const std::vector<std::string>& classes, const LayoutCosts& costs) {
  std::vector<std::vector<std::string>> lists;
  AppendLists(classes, {}, &lists);
  std::vector<std::vector<std::string>> tables;
  std::set<std::string> known;
  for (std::vector<std::string>& list : lists) {
    MGC_ASSIGN_OR_RETURN(std::string places, costs.PlacesOf(list));
    if (known.insert(std::move(places)).second) tables.push_back(std::move(list));
  }
  return tables;
}

int64_t Above(int64_t budget, const LayoutCost& cost) {
  return std::max<int64_t>(cost.parameter_bytes - budget, 0);
}

absl::Status FindBest(const std::vector<std::vector<std::string>>& tables, LayoutCosts* costs,
                      LayoutTrial* trial) {
  bool found = false;
  for (const std::vector<std::string>& table : tables) {
    const absl::StatusOr<LayoutCost> cost = costs->Of(table);
    if (!cost.ok()) {
      ++trial->refused;
      continue;
    }
    const auto rank = [&](const LayoutCost& of) {
      return std::pair<int64_t, int64_t>(Above(trial->budget, of), of.step_ns);
    };
    if (found && rank(*cost) >= rank(trial->best)) continue;
    found = true;
    trial->best = *cost;
    trial->best_rows = absl::StrJoin(table, ", ");
  }
  return found ? absl::OkStatus() : absl::InternalError("every table is refused");
}

absl::StatusOr<CompileOptions> OptionsOf(const LayoutCase& layout_case, const Graph& model) {
  CompileOptions options;
  MGC_ASSIGN_OR_RETURN(options.parallel, ParseParallel(layout_case.mesh, model));
  MGC_ASSIGN_OR_RETURN(options.machine, FindMachinePreset("h100x8"));
  return options;
}

// The classes of the row that ClassStrategy makes: behind the samples.
std::string RowsOf(const StrategySpec& strategy) {
  std::vector<std::string> names;
  for (const DimAxes& dim : strategy.rows.front().dims) names.push_back(dim.dim);
  names.erase(names.begin());
  return absl::StrJoin(names, ", ");
}

}  // namespace

double LayoutTrial::Slower() const {
  return static_cast<double>(chosen.step_ns) / static_cast<double>(best.step_ns) - 1;
}

bool LayoutTrial::Holds() const {
  return Slower() <= 0.05 && Above(budget, chosen) <= Above(budget, best);
}

absl::Status TryTables(const Graph& model, const ModelDims& dims, const CompileOptions& options,
                       LayoutTrial* trial) {
  MGC_ASSIGN_OR_RETURN(const std::vector<ClassChoice> choices, ClassChoices(model, dims, options));
  trial->budget = ParameterBudget(model, choices, options.parallel.tp);
  std::vector<std::string> classes;
  for (const ClassChoice& choice : choices) {
    if (choice.divides) classes.push_back(choice.name);
  }
  trial->classes = classes.size();
  if (classes.size() > kMostClasses) {
    return absl::InvalidArgumentError(absl::StrCat(classes.size(), " classes are too many"));
  }
  LayoutCosts costs(model, dims, options);
  MGC_ASSIGN_OR_RETURN(const auto tables, TablesOf(classes, costs));
  trial->tables = tables.size();
  if (tables.size() >= kMostTables) {
    return absl::InvalidArgumentError(absl::StrCat(tables.size(), " tables are too many"));
  }
  return FindBest(tables, &costs, trial);
}

absl::StatusOr<LayoutTrial> TryAllTables(const LayoutCase& layout_case) {
  LayoutTrial trial;
  trial.of = layout_case;
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(layout_case.file));
  MGC_ASSIGN_OR_RETURN(const Graph read, ParseGraph(text, layout_case.file));
  std::vector<std::string> notes;
  const Graph model = PrepareModel(read, &notes);
  ModelDims dims;
  dims.layers = model.num_layers();
  MGC_ASSIGN_OR_RETURN(const CompileOptions options, OptionsOf(layout_case, model));
  MGC_ASSIGN_OR_RETURN(const ClassLayout layout, LayOutByClasses(model, dims, options));
  trial.chosen = layout.cost;
  trial.chosen_rows = RowsOf(layout.strategy);

  MGC_RETURN_IF_ERROR(TryTables(model, dims, options, &trial));
  return trial;
}

std::string TrialsText(const std::vector<LayoutTrial>& trials) {
  std::string text =
      absl::StrFormat("%-48s %-10s %7s %7s %7s %12s %12s %8s\n", "model", "mesh", "classes",
                      "tables", "refused", "chosen ns", "best ns", "more");
  for (const LayoutTrial& trial : trials) {
    absl::StrAppendFormat(&text, "%-48s %-10s %7d %7d %7d %12d %12d %6.1f %%\n", trial.of.file,
                          trial.of.mesh, trial.classes, trial.tables, trial.refused,
                          trial.chosen.step_ns, trial.best.step_ns, 100 * trial.Slower());
    if (trial.Holds()) continue;
    absl::StrAppend(&text, "  chosen: ", trial.chosen_rows, "; ", trial.chosen.parameter_bytes,
                    " bytes\n  best:   ", trial.best_rows, "; ", trial.best.parameter_bytes,
                    " bytes, budget ", trial.budget, "\n");
  }
  return text;
}

std::vector<LayoutCase> AllLayoutCases() {
  const std::vector<std::string> here = {
      "autoencoder", "biased_mlp", "bilinear",    "dense_experts",      "low_rank",
      "merged_rows", "mlp",        "recommender", "small_op_attention", "stored_transposed",
      "transformer", "two_towers", "wide_mixer"};
  const std::vector<std::string> own = {"mixer",       "packed_weight",     "shared_mlp",
                                        "two_layers",  "transposed_weight", "unet",
                                        "unnamed_rows"};
  std::vector<LayoutCase> cases;
  for (const char* mesh : {"tp=2", "tp=4 dp=2"}) {
    for (const std::string& name : here) {
      cases.push_back({absl::StrCat("tests/class_layouts/", name, ".mgc"), mesh});
    }
    for (const std::string& name : own) {
      cases.push_back({absl::StrCat("tests/own_models/", name, ".mgc"), mesh});
    }
  }
  return cases;
}

}  // namespace mgc
