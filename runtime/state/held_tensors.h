// What of a plan's parameters the ranks hold, and where: each as a piece of a logical tensor.

#ifndef MGC_RUNTIME_STATE_HELD_TENSORS_H_
#define MGC_RUNTIME_STATE_HELD_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/plan/plan.h"

namespace mgc {

// InvalidArgument when a parameter of the plan lies outside its rank's arena or has no start;
// Unimplemented when it keeps a state that no TensorRole stands for: a checkpoint would lose it.
absl::Status CheckParameters(const Plan& plan);

enum class TensorRole : uint8_t {
  kParam,
  kMeanGradient,  // of the last step: its sums times what makes them means, before clipping
  kFirstMoment,   // what the optimizer keeps as `m`
  kSecondMoment,  // as `v`
};

// A parameter that several classes hold is the tensor of its owner, and has copies.
enum class Holders : uint8_t { kOwners, kAll };

// The scales of a tensor that is held as whole numbers (graph/weights/quantized.h).
struct HeldScales {
  const TensorType* type = nullptr;
  const Sharding* sharding = nullptr;
  int64_t address = 0;
  int first_dim = 0;  // of the tensor's dims that they are along
};

// A logical tensor as the ranks of a class hold it. Points into the plan. What is quantized goes by
// the name of what its numbers are made of.
struct HeldTensor {
  std::string name;
  const TensorType* type = nullptr;
  const Sharding* sharding = nullptr;
  int64_t address = 0;  // in the arena of each
  int rank_class = 0;
  bool owner = true;
  const Attrs* init = nullptr;  // of a parameter: how it begins
  absl::optional<HeldScales> scales = absl::nullopt;
};

// All parameters, their gradients as sums, or moments, in the order of the plan's stages; of owners
// each name comes once; whole numbers of a parameter that is there beside them own nothing. Only
// trained parameters have gradients; moments those whose optimizer keeps them. FailedPrecondition
// when the plan keeps no gradients, Unimplemented for whole numbers without their scales; of copies
// they are not asked for.
absl::StatusOr<std::vector<HeldTensor>> HeldTensors(const Plan& plan, TensorRole role,
                                                    Holders holders = Holders::kOwners);

// FailedPrecondition where one of them is quantized: what is held is not what is called so.
absl::Status CheckHeldAsCalled(absl::Span<const HeldTensor> tensors);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_HELD_TENSORS_H_
