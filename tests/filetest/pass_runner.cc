#include "tests/filetest/pass_runner.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "passes/differentiate.h"
#include "passes/fuse.h"
#include "passes/parallel_config.h"
#include "passes/partition.h"
#include "passes/recompute.h"
#include "passes/shard.h"
#include "passes/simplify.h"
#include "passes/strategy.h"

namespace mgc {
namespace {

absl::Status Unknown(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("unknown pass or option `", what, "`"));
}

struct ShardOptions {
  ParallelConfig parallel;
  int64_t dp = 1;
  int64_t kv_heads = 1 << 20;  // more than any tp: none are shared
};

absl::StatusOr<ShardOptions> ParseShardOptions(absl::string_view text) {
  ShardOptions options;
  ParallelConfig& parallel = options.parallel;
  const std::pair<absl::string_view, int64_t*> numbers[] = {
      {"tp", &parallel.tp}, {"cp", &parallel.cp},     {"pp", &parallel.pp},
      {"dp", &options.dp},  {"zero", &parallel.zero}, {"kv_heads", &options.kv_heads}};
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (word == "sp") {
      parallel.sequence_parallel = true;
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, '=');
    bool known = false;
    for (const auto& [name, number] : numbers) {
      known |= name == parts.first && absl::SimpleAtoi(parts.second, number);
    }
    if (!known) return Unknown(word);
  }
  parallel.world_size = parallel.tp * parallel.cp * parallel.pp * options.dp;
  return options;
}

absl::StatusOr<Graph> RunShard(absl::string_view text, const Graph& graph) {
  MGC_ASSIGN_OR_RETURN(const ShardOptions options, ParseShardOptions(text));
  MGC_ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(options.parallel, options.kv_heads));
  const Strategy strategy = MegatronStrategy(options.parallel, options.kv_heads, mesh);
  MGC_ASSIGN_OR_RETURN(Sharded sharded, Shard(graph, mesh, strategy));
  return std::move(sharded.graph);
}

}  // namespace

absl::StatusOr<Graph> RunPassByName(absl::string_view pass, absl::string_view options,
                                    const Graph& graph) {
  if (pass == "shard") return RunShard(options, graph);
  if (pass == "recompute" && options == "full") return Recompute(graph, RecomputeKind::kFull);
  if (pass == "recompute" && options == "selective") {
    return Recompute(graph, RecomputeKind::kSelective);
  }
  if (!options.empty()) return Unknown(options);
  if (pass == "simplify") return Simplify(graph);
  if (pass == "differentiate") return Differentiate(graph);
  if (pass == "partition") return Partition(graph);
  if (pass == "fuse") return Fuse(graph);
  return Unknown(pass);
}

}  // namespace mgc
