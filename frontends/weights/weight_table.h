// The rows that tell how a family's files hold its parameters; for weight_map.cc only.

#ifndef MGC_FRONTENDS_WEIGHTS_WEIGHT_TABLE_H_
#define MGC_FRONTENDS_WEIGHTS_WEIGHT_TABLE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "frontends/model_config.h"

namespace mgc {

// How a tensor holds the parameters of a row. Their first `inputs` dims are what a product sums
// over, their others its outputs; a tensor of a file has one dim for all of either.
enum class WeightLayout : uint8_t {
  kStored,   // [inputs, outputs], as the parameter has them; parts side by side in the outputs
  kLinear,   // [outputs, inputs]: torch.nn.Linear; parts one below the other
  kByHead,   // the same, each head's outputs of all parts together
  kPatches,  // kLinear of the inputs [channels, rows, columns], which stay dims: torch.nn.Conv2d
};

inline constexpr int kMostParts = 3;

// One tensor, or with its bias two: `<name>.weight` has the parameters, `<name>.bias` those named
// `.bias` behind them. `*` in a name stands for the layer, whose parameters these are then. What
// the model lacks, its files do too.
struct WeightRow {
  const char* name;
  const char* parameters[kMostParts] = {};
  int inputs = 0;
  WeightLayout layout = WeightLayout::kStored;
  int ones = 0;        // dims of size 1 before the others
  bool exact = false;  // the name is whole, and no bias beside it
  bool is_norm = false;
  bool is_table = false;  // of rows that are looked up, or that make logits
};

// Whether a row is torch.nn.Linear, or the like of transformers.
bool IsLinear(const WeightRow& row);

struct WeightRule {
  const char* ending;
  const char* reason;
};

struct FamilyWeights {
  absl::Span<const WeightRow> rows;
  const char* prefix;
  bool norms_add_one = false;  // they multiply by 1 + weight
  absl::Span<const WeightRule> ignored;
  const char* tied_head = "lm_head.weight";  // in files that have it though it is the word table
  bool old_norms = false;                    // gamma and beta
};

const FamilyWeights& WeightsOf(ModelFamily family);

}  // namespace mgc

#endif  // MGC_FRONTENDS_WEIGHTS_WEIGHT_TABLE_H_
