// The flags that say how a model is spread over ranks, under mgc's names and Megatron-LM's.

#ifndef MGC_TOOLS_CLI_PARALLEL_FLAGS_H_
#define MGC_TOOLS_CLI_PARALLEL_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "graph/base/diagnostic.h"
#include "passes/config/parallel_config.h"
#include "tools/cli/flags.h"

namespace mgc {

// What the flags were given, before defaults.
struct ParallelFlags {
  absl::optional<int64_t> world_size, tp, pp, vp, cp, ep, etp;
  absl::optional<std::string> order;
  bool tp_pp_dp_order = false;
  bool sequence_parallel = false;
  bool decrease_batch_size = false;

  absl::optional<int64_t> micro_batch_size, global_batch_size, seq_length;

  absl::optional<std::string> schedule, recompute, zero, grad_reduce_dtype;
  bool distributed_optimizer = false;
  absl::optional<int64_t> group_size, zero_group, split_products;
  bool no_reshard_after_forward = false;
  absl::optional<std::string> optimizer;
  std::vector<std::string> param_groups;  // as given
  absl::optional<std::string> layout, cuts;
  absl::optional<int64_t> first_layers, last_layers;
  bool account_for_embedding = false;
  bool account_for_loss = false;
  absl::optional<int64_t> vocab_multiple;
  absl::optional<std::string> strategy;
  bool allow_replicated = false;
  bool bf16 = false;
  bool fp16 = false;
};

// Sizes of the mesh and its order: --world-size --tp --cp --ep --etp --pp --order.
void AddMeshFlags(Flags* flags, ParallelFlags* out);
// --pp, --vp, --schedule and --group-size, which also stand in the two others.
void AddScheduleFlags(Flags* flags, ParallelFlags* out);
// Batch, memory and placement: all that are in neither of the two above.
void AddTrainingFlags(Flags* flags, ParallelFlags* out);

// Appends what is wrong with the words of --order (G0), of a layout (P3) and of --param-group (F4),
// and takes them back; and flags that contradict each other (F7).
void CheckWords(ParallelFlags* flags, ParsedFlags* parsed);

// With the defaults of the help texts: a world of tp * pp * cp ranks, micro-batch 1, one
// micro-batch a step for every data-parallel rank, 1f1b, no recomputation, ZeRO 0. `seq_length`
// holds where no flag says otherwise. With `decrease_batch_size` a global batch is cut down to
// whole micro-batches of all data-parallel ranks, if there is one.
ParallelConfig ConfigOf(const ParallelFlags& flags, int64_t seq_length);

// The violations of a configuration that stand whatever the bad flags of a command line should have
// been: those of rules that read none of them.
Diagnostics WithoutRulesOf(const std::vector<std::string>& bad_flags,
                           const Diagnostics& violations);

// Prints all violations to stderr, and where help is if the command line is wrong by itself. The
// exit code: kExitUsage if any violation is of `usage`, else kExitInfeasible.
int Refuse(const Diagnostics& usage, const Diagnostics& combination, absl::string_view command);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_PARALLEL_FLAGS_H_
