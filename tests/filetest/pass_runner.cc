#include "tests/filetest/pass_runner.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/plan/data_input.h"
#include "passes/compile.h"
#include "passes/config/parallel_config.h"
#include "passes/form_text.h"

namespace mgc {
namespace {

absl::Status Unknown(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("unknown pass or option `", what, "`"));
}

// Options that are words of their own.
bool ParseWord(absl::string_view word, ParallelConfig* parallel) {
  for (const auto& [name, flag] : {std::make_pair("sp", &parallel->sequence_parallel),
                                   std::make_pair("replicated", &parallel->allow_replicated)}) {
    if (word != name) continue;
    *flag = true;
    return true;
  }
  if (const auto recompute = ParseRecomputeKind(word)) parallel->recompute = *recompute;
  if (const auto schedule = ParseScheduleKind(word)) parallel->schedule = *schedule;
  return ParseRecomputeKind(word).has_value() || ParseScheduleKind(word).has_value();
}

absl::StatusOr<ParallelConfig> ParseOptions(absl::string_view text) {
  ParallelConfig parallel;
  int64_t dp = 1;
  int64_t micro = 1;
  const std::pair<absl::string_view, int64_t*> numbers[] = {{"tp", &parallel.tp},
                                                            {"cp", &parallel.cp},
                                                            {"pp", &parallel.pp},
                                                            {"vp", &parallel.vp},
                                                            {"dp", &dp},
                                                            {"micro", &micro},
                                                            {"zero", &parallel.zero},
                                                            {"group", &parallel.group_size}};
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, '=');
    bool known = ParseWord(word, &parallel);
    for (const auto& [name, number] : numbers) {
      known |= name == parts.first && absl::SimpleAtoi(parts.second, number);
    }
    if (!known) return Unknown(word);
  }
  parallel.world_size = parallel.tp * parallel.cp * parallel.pp * dp;
  parallel.global_batch_size = micro * dp;
  return parallel;
}

// A graph fixes its micro-batch and the length of its sequences.
void TakeSizes(const Graph& graph, ParallelConfig* parallel) {
  const int64_t dp = DataParallelSize(*parallel);
  const int64_t micro_batches = parallel->global_batch_size / dp;
  for (const Value& value : graph.values()) {
    for (const Dim& dim : value.type.dims) {
      if (dim.name == "batch") parallel->micro_batch_size = dim.size / dp;
      if (dim.name == "seq") parallel->seq_length = dim.size;
    }
  }
  if (const int64_t tokens = TokensPerSample(graph); tokens > 0) parallel->seq_length = tokens;
  parallel->global_batch_size = parallel->micro_batch_size * dp * micro_batches;
}

}  // namespace

absl::StatusOr<ParallelConfig> ParseParallel(absl::string_view options, const Graph& graph) {
  MGC_ASSIGN_OR_RETURN(ParallelConfig parallel, ParseOptions(options));
  TakeSizes(graph, &parallel);
  return parallel;
}

absl::StatusOr<PassResult> RunPassesByName(absl::string_view passes, absl::string_view options,
                                           const Graph& graph) {
  MGC_ASSIGN_OR_RETURN(const ParallelConfig parallel, ParseParallel(options, graph));
  MGC_ASSIGN_OR_RETURN(const PassContext context, ContextOf(parallel, graph));
  PassForm form = StepGraphs{graph, absl::nullopt, {}};
  for (absl::string_view pass : absl::StrSplit(passes, ',')) {
    absl::StatusOr<PassForm> next = RunPassByName(AllPasses(), pass, std::move(form), context, {});
    if (absl::IsNotFound(next.status())) return Unknown(pass);
    if (!next.ok()) return next.status();
    form = *std::move(next);
  }
  PassResult result{PrintForm(form), absl::nullopt};
  if (auto* graphs = std::get_if<StepGraphs>(&form)) result.graph = std::move(graphs->train);
  return result;
}

}  // namespace mgc
