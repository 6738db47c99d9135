// A pass, as the compiler, mgc-opt and text tests run it: from one form of the program to the next.
//
//   logical ▶ training ▶ sharded ▶ local ▶ staged ▶ scheduled ▶ ordered ▶ plan
//
// The one list of passes, and why each stands where it stands, is in passes/compile.cc. RunPass
// times a pass, and checks what comes out against the level the list says.

#ifndef MGC_PASSES_PASS_H_
#define MGC_PASSES_PASS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/ir/graph.h"
#include "graph/plan/plan.h"
#include "graph/types/machine.h"
#include "passes/config/parallel_config.h"
#include "passes/config/place_layers.h"
#include "passes/config/strategy_spec.h"
#include "passes/fold/layer_map.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/order.h"
#include "passes/plan/schedule.h"

namespace mgc {

// The four levels of graphs (graph/ir/graph.h), then the forms of a plan
// (passes/plan/forms/plan_forms.h).
enum class PassLevel : uint8_t {
  kLogical,
  kTraining,
  kSharded,
  kLocal,
  kStaged,
  kScheduled,
  kOrdered,
  kPlan,
};
absl::string_view NameOf(PassLevel level);

// The graphs of one step, on the same level.
struct StepGraphs {
  Graph train;                     // the whole step; on the logical level the model itself
  absl::optional<Graph> eval;      // from differentiate on: forward alone, to evaluate
  std::vector<std::string> notes;  // for the user
};

// What the compiler holds between two passes.
using PassForm = std::variant<StepGraphs, StagedPlan, ScheduledPlan, OrderedPlan, Plan>;
PassLevel LevelOf(const PassForm& form);

// What passes read beside the form they change.
struct PassContext {
  ParallelConfig parallel;
  StrategySpec strategy = DefaultStrategy();  // shard
  LayerPlacement placement;                   // stage
  ScheduleSpec schedule;                      // schedule
  Machine machine;                            // order: whose costs
  OrderScope order = {};                      // order
  const Graph* model = nullptr;  // from stage on: what the plan is of; outlives the context
  bool brings_model = true;      // allocate: whether the plan has a copy of it
  PlanOptions flags;             // allocate: written into the plan
  absl::optional<LayerMap> layers = absl::nullopt;  // stage: where the graphs are of a folded model
};

// The context of a graph that comes without a checked configuration: layers are placed by the
// configuration's rules, dims that the model lacks restrict nothing. InvalidArgument when the
// layers cannot be placed.
absl::StatusOr<PassContext> ContextOf(const ParallelConfig& parallel, const Graph& model);

struct PassEntry {
  absl::string_view name;
  absl::string_view doc;  // one sentence
  PassLevel from;
  PassLevel to;
  absl::StatusOr<PassForm> (*run)(PassForm form, const PassContext& context);
};

// A pass that has run.
struct FinishedPass {
  absl::string_view name;
  int64_t ns = 0;  // how long it took, its check apart
  const PassForm& form;
};

struct RunOptions {
  // Whether what comes out is checked against the pass' output level, `after pass shard: ...`:
  // graphs by graph/ir/check.h, an Internal error; a plan in the making by
  // passes/plan/forms/check_forms.h, a plan by graph/plan/plan_check.h, InvalidArgument.
  bool check = true;
  // Called after every pass; false ends the run with a Cancelled error.
  std::function<bool(const FinishedPass& pass)> after_pass;
};

// Runs one pass. pass_c1, InvalidArgument: the form is of another level than the pass takes.
absl::StatusOr<PassForm> RunPass(const PassEntry& pass, PassForm form, const PassContext& context,
                                 const RunOptions& options);

// Runs a pass of the list by its name; of several of that name the one for the form's level, or
// pass_c1. NotFound for an unknown name.
absl::StatusOr<PassForm> RunPassByName(absl::Span<const PassEntry> passes, absl::string_view name,
                                       PassForm form, const PassContext& context,
                                       const RunOptions& options);

// Each name of the list once.
std::vector<absl::string_view> PassNames(absl::Span<const PassEntry> passes);

// Applies a pass over graphs to both graphs of a step. `fn` returns a Graph or a StatusOr of one.
template <typename Fn>
absl::StatusOr<PassForm> OnGraphs(PassForm form, const Fn& fn) {
  StepGraphs graphs = std::get<StepGraphs>(std::move(form));
  absl::StatusOr<Graph> train = fn(graphs.train);
  if (!train.ok()) return train.status();
  graphs.train = *std::move(train);
  if (!graphs.eval.has_value()) return graphs;
  absl::StatusOr<Graph> eval = fn(*graphs.eval);
  if (!eval.ok()) return eval.status();
  graphs.eval = *std::move(eval);
  return graphs;
}

}  // namespace mgc

#endif  // MGC_PASSES_PASS_H_
