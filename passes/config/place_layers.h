// Which layers each virtual stage of a pipeline holds.
//
// Without flags: with N = pp * vp stages, all hold ceil(L / N) layers but for those one layer
// short, which are taken last, first, last but one, second, and so on, since the ends also hold
// embedding and head. An end may hold the embedding or the head alone; any other empty stage is
// refused. Of a model with an embedding and no head the first is taken before the last.
//
// With flags, Megatron's rules (transformer_config.py, pipeline_parallel_layer_layout.py) hold to
// the letter, except that two things are refused that Megatron lets pass: a negative number of
// middle layers and a first or last stage that holds nothing:
//   layout string               stages as written, empty ones between others included
//   first / last layer counts   of the first / last *rank*, over its chunks; the rest even
//   account_for_*               embedding / head counts as one layer of the first / last stage

#ifndef MGC_PASSES_CONFIG_PLACE_LAYERS_H_
#define MGC_PASSES_CONFIG_PLACE_LAYERS_H_

#include <cstdint>
#include <vector>

#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "graph/types/model_dims.h"
#include "passes/config/parallel_config.h"

namespace mgc {

// Stages (pp * vp) and layers a model may have at most.
inline constexpr int64_t kMaxPipelineSize = 1 << 16;

// What one virtual stage holds.
struct StageContent {
  bool has_embedding = false;
  bool has_head = false;
  int64_t first_layer = 0;  // layers first_layer .. first_layer + num_layers - 1
  int64_t num_layers = 0;
  int64_t mtp_layers = 0;  // multi-token-prediction layers, only through a layout string

  bool IsEmpty() const { return !has_embedding && !has_head && num_layers == 0 && mtp_layers == 0; }
};

struct LayerPlacement {
  int64_t pp = 1;
  int64_t vp = 1;
  std::vector<StageContent> stages;  // pp * vp
  std::vector<StagePlace> places;    // where each stage lives
};

// The loop: stages go round and round over the pipeline ranks, vp times.
std::vector<StagePlace> LoopPlaces(int64_t pp, int64_t vp);

struct LayerPlacementSpec {
  int64_t num_layers = 1;
  int64_t mtp_layers = 0;  // that the model has
  int64_t pp = 1;
  int64_t vp = 0;  // 0 = not given: what the layout string says, otherwise 1
  LayoutFlags flags;
  ModelLayers places = {};  // an end that the model lacks holds layers or nothing
};

struct LayerPlacementResult {
  LayerPlacement placement;  // meaningful only without violations
  Diagnostics violations;    // P2 to P9, P17, P18, and P0 for a size out of range
};

// Places every layer exactly once, in order, or says everything that forbids it.
LayerPlacementResult PlaceLayers(const LayerPlacementSpec& spec);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_PLACE_LAYERS_H_
