// Random models as users could write them: layers of products, mixers, attention, norms, branches
// and skips over layers; shared, packed, flat and transposed weights; merged rows, pins, several
// losses and inputs; with Megatron's names of dims, names of their own or none; with layers or
// without.

#ifndef MGC_TESTS_RANDOM_MODELS_RANDOM_MODEL_H_
#define MGC_TESTS_RANDOM_MODELS_RANDOM_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "tests/fuzz/dice.h"

namespace mgc {

enum class DimNaming { kMegatron, kOwn, kNone };

// An axis that pins may name, and how many ranks it has.
using PinAxis = std::pair<std::string, int64_t>;

struct RandomModelOptions {
  int64_t samples = 4;
  int64_t unit = 1;          // that most sizes are multiples of
  int layers = 2;            // 0: the model names none
  bool tokens = false;       // samples have a sequence
  bool attention = false;    // every layer has the fused op, and samples have a sequence
  size_t shared_one_in = 6;  // weights of a type that there is already
  bool skips = true;         // over layers
  std::vector<PinAxis> pins;
};

// A model of the logical level, which passes its check, with a loss, a `count` and a use of every
// parameter.
Graph RandomModel(const RandomModelOptions& options, DimNaming naming, Dice* dice);

// The name of the residual stream's dims in a model of that naming; empty names for none.
std::vector<std::string> StreamDims(DimNaming naming);

}  // namespace mgc

#endif  // MGC_TESTS_RANDOM_MODELS_RANDOM_MODEL_H_
