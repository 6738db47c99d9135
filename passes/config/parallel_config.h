// What a user asks for: how a model is spread over the ranks, and the sizes of the model that
// decide whether that is possible. Plain values; passes/config/check_config.h says which
// combinations are legal.

#ifndef MGC_PASSES_CONFIG_PARALLEL_CONFIG_H_
#define MGC_PASSES_CONFIG_PARALLEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/types/mesh.h"
#include "graph/types/tensor_type.h"
#include "passes/config/optimizer_config.h"
#include "passes/config/recomputation.h"

namespace mgc {

enum class ScheduleKind { kGpipe, kOneFOneB, kInterleaved };

// `gpipe`, `1f1b`, `interleaved`; nothing for other text.
std::optional<ScheduleKind> ParseScheduleKind(absl::string_view text);
absl::string_view ToString(ScheduleKind kind);

// Flags that place layers by hand; without any, layers are placed as evenly as possible. All but
// the last are Megatron's.
struct LayoutFlags {
  std::optional<std::string> layout;            // --pipeline-model-parallel-layout
  std::optional<int64_t> decoder_first_layers;  // --decoder-first-pipeline-num-layers
  std::optional<int64_t> decoder_last_layers;   // --decoder-last-pipeline-num-layers
  bool account_for_embedding = false;           // --account-for-embedding-in-pipeline-split
  bool account_for_loss = false;                // --account-for-loss-in-pipeline-split
  // --cuts: of a graph that names no layers, the values behind which stages end; empty: by cost.
  std::vector<std::string> cuts;
};

// Pieces that the rows of a product are cut into, at most.
constexpr int64_t kMostPieces = 8;

struct ParallelConfig {
  int64_t world_size = 1;
  int64_t tp = 1;
  int64_t pp = 1;
  int64_t vp = 0;  // chunks per rank; 0 = not given: what the layout string says, otherwise 1
  int64_t cp = 1;
  int64_t ep = 1;
  int64_t etp = 0;  // tensor parallelism inside experts; 0 = not given: tp
  std::string order = kDefaultAxisOrder;
  bool sequence_parallel = false;

  int64_t micro_batch_size = 1;   // samples
  int64_t global_batch_size = 1;  // samples per step over all ranks
  int64_t seq_length = 1;         // tokens per sample

  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  int64_t group_size = 0;  // micro-batches per chunk in a row when interleaved; 0 = chosen
  Recomputation recompute;
  int64_t zero = 0;        // ZeRO level
  int64_t zero_group = 0;  // ranks along dp that share pieces, 0: all; groups hold copies
  // Pieces of rows in which products of forward run beside their collectives, at most
  // (passes/graph/split_products.h); 1 to kMostPieces.
  int64_t split_products = 1;
  // With ZeRO 3: whether backward gathers parameters again, instead of keeping what was gathered.
  bool reshard_after_forward = true;
  // In which products and what follows from them are computed (passes/graph/narrow.h). In f16 the
  // loss is scaled (passes/graph/scale_loss.h).
  DType compute_type = DType::kF32;
  // In which gradients travel when they are summed over ranks that hold other data
  // (passes/graph/narrow_sums.h).
  DType gradient_sums = DType::kF32;
  OptimizerConfig optimizer;
  LayoutFlags layout;
  // Whether a request may come to nothing: an axis that cuts no value, recomputation of nothing.
  bool allow_replicated = false;
};

// Ranks that hold the same parameters: world / (tp * pp * cp), 0 if that does not divide exactly.
int64_t DataParallelSize(const ParallelConfig& config);

// Micro-batches per step and data-parallel rank, 0 if the global batch does not divide exactly.
int64_t MicroBatchesPerStep(const ParallelConfig& config);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_PARALLEL_CONFIG_H_
