// Whether a model can be spread over the ranks as asked, before any graph is built: sizes, groups,
// model dims, batch, schedule and layer placement, all rules at once.
//
// The sizes are those of a family of models. A graph has others in every value: its ModelDims hold
// its layers, and its values are checked as a strategy's rows cut them
// (passes/graph/shard/check_rows.h).
//
// Labels are those of Megatron's own conditions (G groups, M model, P pipeline, B batch). Ours:
//   S1  vp > 1 needs schedule interleaved        P18  a chunk that holds nothing
//   S2  more actions than a schedule may have    U2   ZeRO level not available yet
//   S3  a group size needs interleaved too        P19  recomputation by layer for other layers
//   T3  a value with too many elements
//   G0, M0, P0, S0  a value that is out of range by itself
// Not applied: P5 and P6 without layout flags and P11 (any layer count and interleaving at pp 2 are
// legal), M5 (any vocabulary is padded in the plan).

#ifndef MGC_PASSES_CONFIG_CHECK_CONFIG_H_
#define MGC_PASSES_CONFIG_CHECK_CONFIG_H_

#include <cstdint>
#include <vector>

#include "graph/base/diagnostic.h"
#include "graph/types/model_dims.h"
#include "passes/config/parallel_config.h"
#include "passes/config/place_layers.h"

namespace mgc {

// What a configuration comes to. Everything but `violations` is meaningful only without them.
struct CheckedConfig {
  Diagnostics violations;
  int64_t dp = 0;
  int64_t vp = 0;             // chunks per rank, also when a layout string decides them
  int64_t micro_batches = 0;  // per step and data-parallel rank
  int64_t group_size = 0;     // of an interleaved schedule, given or chosen
  LayerPlacement placement;
};

CheckedConfig CheckConfig(const ParallelConfig& config, const ModelDims& model);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_CHECK_CONFIG_H_
