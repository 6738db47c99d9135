#include "tests/filetest/pass_runner.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "passes/compile.h"
#include "passes/config/parallel_config.h"
#include "passes/form_text.h"
#include "passes/graph/resize.h"

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
  for (const DType narrow : {DType::kBF16, DType::kF16}) {
    if (word != NameOf(narrow)) continue;
    parallel->compute_type = narrow;
    return true;
  }
  if (word == "bf16_sums") {
    parallel->gradient_sums = DType::kBF16;
    return true;
  }
  if (const auto recompute = ParseRecomputation(word); recompute.ok())
    parallel->recompute = *recompute;
  if (const auto schedule = ParseScheduleKind(word)) parallel->schedule = *schedule;
  return ParseRecomputeKind(word).has_value() || ParseScheduleKind(word).has_value();
}

absl::StatusOr<ParallelConfig> ParseOptions(absl::string_view text) {
  ParallelConfig parallel;
  parallel.micro_batch_size = 0;  // not given
  parallel.seq_length = 0;
  int64_t dp = 1;
  int64_t micro = 1;
  const std::pair<absl::string_view, int64_t*> numbers[] = {{"tp", &parallel.tp},
                                                            {"cp", &parallel.cp},
                                                            {"pp", &parallel.pp},
                                                            {"vp", &parallel.vp},
                                                            {"dp", &dp},
                                                            {"micro", &micro},
                                                            {"zero", &parallel.zero},
                                                            {"split", &parallel.split_products},
                                                            {"samples", &parallel.micro_batch_size},
                                                            {"seq", &parallel.seq_length},
                                                            {"group", &parallel.group_size}};
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, '=');
    bool known = ParseWord(word, &parallel);
    if (parts.first == "cuts") {
      parallel.layout.cuts = absl::StrSplit(parts.second, ',');
      known = true;
    }
    for (const auto& [name, number] : numbers) {
      known |= name == parts.first && absl::SimpleAtoi(parts.second, number);
    }
    if (!known) return Unknown(word);
  }
  parallel.world_size = parallel.tp * parallel.cp * parallel.pp * dp;
  parallel.global_batch_size = micro * dp;
  return parallel;
}

// Sizes that no option gives are the graph's.
void TakeSizes(const Graph& graph, ParallelConfig* parallel) {
  const int64_t dp = DataParallelSize(*parallel);
  const int64_t micro_batches = parallel->global_batch_size / dp;
  const int64_t samples = SamplesOf(graph).size;
  const int64_t tokens = TokensOf(graph).size;
  if (parallel->micro_batch_size == 0)
    parallel->micro_batch_size = std::max<int64_t>(samples / dp, 1);
  if (parallel->seq_length == 0) parallel->seq_length = std::max<int64_t>(tokens, 1);
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
