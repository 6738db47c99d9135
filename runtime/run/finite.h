// The first tensor that is not finite, with what is around it: for whoever asks why a loss is NaN.

#ifndef MGC_RUNTIME_RUN_FINITE_H_
#define MGC_RUNTIME_RUN_FINITE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "graph/plan/plan.h"
#include "graph/types/tensor_type.h"
#include "runtime/load/load_plan.h"
#include "runtime/run/device.h"
#include "runtime/run/rank.h"

namespace mgc {

// What is looked at while a step runs. The loss and the norm are looked at after each step anyway.
enum class FiniteCheck : uint8_t {
  kLoss,       // nothing
  kGradients,  // what backward computes
  kAll,        // what every instruction computes
};

// What one tile holds.
struct TileNumbers {
  absl::optional<int64_t> first_bad;  // place of the first NaN or infinity
  bool is_nan = false;                // it
  double least = 0, most = 0;         // of the numbers that are finite
};

// Of elements of any type; integers are finite.
TileNumbers NumbersOf(DType dtype, const void* tile, int64_t elements);

// OK when the outputs of an instruction that has run on `rank` are finite. Else DataLoss: which one
// is not, where in the logical tensor, what it is, where in the model its op stands, and which of
// the inputs are finite, within which bounds. The rank has bound the call, and is at `place` of
// those here.
absl::Status CheckFinite(const Plan& plan, const Segment& segment, const LoadedInstr& instr,
                         int layer, const Rank& rank, int place, Device& device);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_FINITE_H_
