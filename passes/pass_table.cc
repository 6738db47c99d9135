#include "passes/pass_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "passes/differentiate.h"
#include "passes/fuse.h"
#include "passes/partition.h"
#include "passes/recompute.h"
#include "passes/shard.h"
#include "passes/simplify.h"
#include "passes/strategy.h"

namespace mgc {
namespace {

absl::StatusOr<Graph> RunShard(const Graph& graph, const PassOptions& options) {
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(options.parallel, options.kv_heads));
  const Strategy strategy = MegatronStrategy(options.parallel, options.kv_heads, mesh);
  MGC_ASSIGN_OR_RETURN(Sharded sharded, Shard(graph, mesh, strategy));
  return std::move(sharded.graph);
}

constexpr PassEntry kPasses[] = {
    {"simplify", "Removes what does nothing.", Level::kLogical, Level::kLogical,
     [](const Graph& graph, const PassOptions&) -> absl::StatusOr<Graph> {
       return Simplify(graph);
     }},
    {"differentiate", "Appends backward and the update.", Level::kLogical, Level::kTraining,
     [](const Graph& graph, const PassOptions&) { return Differentiate(graph); }},
    {"evaluation", "The forward-only counterpart: dropout off, loss reported.", Level::kLogical,
     Level::kTraining, [](const Graph& graph, const PassOptions&) { return Evaluation(graph); }},
    {"shard", "Gives every value a sharding.", Level::kTraining, Level::kSharded, RunShard},
    {"partition", "Spells reshards out as collectives.", Level::kSharded, Level::kLocal,
     [](const Graph& graph, const PassOptions&) -> absl::StatusOr<Graph> {
       return Partition(graph);
     }},
    {"recompute", "Computes again what backward would keep.", Level::kLocal, Level::kLocal,
     [](const Graph& graph, const PassOptions& options) -> absl::StatusOr<Graph> {
       return DropDeadNodes(Recompute(graph, options.parallel.recompute));
     }},
    {"fuse", "Replaces small ops by fused ones.", Level::kLocal, Level::kLocal,
     [](const Graph& graph, const PassOptions&) -> absl::StatusOr<Graph> { return Fuse(graph); }},
};

}  // namespace

absl::Span<const PassEntry> GraphPasses() { return kPasses; }

absl::StatusOr<Graph> RunPass(absl::string_view name, const Graph& graph,
                              const PassOptions& options) {
  for (const PassEntry& pass : kPasses) {
    if (pass.name != name) continue;
    // Simplify is the one pass that works on two levels.
    const bool fits = graph.level() == pass.from ||
                      (pass.name == "simplify" && graph.level() == Level::kTraining);
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("pass ", name, " takes a ", NameOf(pass.from),
                                                     " graph, this one is ", NameOf(graph.level()),
                                                     " [pass_c1]"));
    }
    absl::StatusOr<Graph> result = pass.run(graph, options);
    if (!result.ok()) return Annotate(result.status(), absl::StrCat("pass ", name));
    return result;
  }
  std::string known;
  for (const PassEntry& pass : kPasses)
    absl::StrAppend(&known, known.empty() ? "" : ", ", pass.name);
  return absl::NotFoundError(absl::StrCat("unknown pass `", name, "`; known: ", known));
}

}  // namespace mgc
