// What each layer of a model takes on one rank of a tensor- and context-parallel group, read off
// segments that the compiler has staged: the search bounds whole plans by it.
//
//   llama, tp 4, micro-batch 2   ->   embedding F 1 us B 2 us, layer F 10 us B 21 us keeps 3 MB,
//   ...
//
// Profiles know nothing of data and pipeline parallelism: ranks along dp run the same, and stages
// are made of layers.

#ifndef MGC_PASSES_SEARCH_PLANS_MODEL_PROFILE_H_
#define MGC_PASSES_SEARCH_PLANS_MODEL_PROFILE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/machine.h"
#include "graph/types/model_dims.h"
#include "passes/compile.h"
#include "passes/config/recomputation.h"
#include "passes/plan/forms/plan_forms.h"

namespace mgc {

// Nanoseconds and bytes of one layer on one rank, or of several together.
struct LayerProfile {
  int64_t forward_ns = 0;  // of a micro-batch, with what collectives leave exposed
  int64_t backward_ns = 0;
  int64_t compute_ns = 0;        // of both, without what is exposed
  int64_t forward_queue_ns = 0;  // how long the communication queue is busy
  int64_t backward_queue_ns = 0;
  int64_t update_ns = 0;    // compute of the update, nothing cut over dp
  int64_t frame_bytes = 0;  // what a micro-batch's forward keeps, with the stream behind the layer
  int64_t param_bytes = 0;  // of masters
  int64_t grad_bytes = 0;
  int64_t state_bytes = 0;
  int64_t copy_bytes = 0;  // of working copies
  int64_t trained = 0;     // layers that have gradients
  // Of one forward or backward: the most that any layer takes.
  int64_t transient_bytes = 0;
  int64_t workspace_bytes = 0;

  LayerProfile& operator+=(const LayerProfile& other);
};

struct ModelProfile {
  bool has_embedding = false;
  bool has_head = false;
  // Embedding, layers, head, in this order.
  std::vector<LayerProfile> layers;
  int64_t stream_bytes = 0;  // that a stage hands to the next, and back

  // Into `layers`, of a layer of a plan; what belongs to no layer is the last one's.
  size_t PlaceOf(int layer) const;
};

inline constexpr std::array<RecomputeKind, 3> kRecomputeKinds = {
    RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull};
inline constexpr size_t kNumRecomputeKinds = kRecomputeKinds.size();

// The profile of every kind of recomputation, the same in all layers; null where it may not be
// used.
using ProfilesByKind = std::array<const ModelProfile*, kNumRecomputeKinds>;

// The profile of `model` for options.parallel with one rank along dp and pp: its world is tp * cp,
// its global batch one micro-batch. `model` has been built for it. Layers that are equal are looked
// at once. Errors: those of Compile.
absl::StatusOr<ModelProfile> ProfileModel(ModelCompiler& model, CompileOptions options);

// Its two parts: the plan in the making as stage leaves it, and what is read off it.
absl::StatusOr<StagedPlan> StageModel(ModelCompiler& model, CompileOptions options);
ModelProfile ProfileOf(const StagedPlan& staged, const Machine& machine);

// `config` as a profile is made for it: alone along dp and pp, without what they bring.
ParallelConfig ProfiledConfig(ParallelConfig config);

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_MODEL_PROFILE_H_
