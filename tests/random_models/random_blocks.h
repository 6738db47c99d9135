// What the layers of random models are made of: each takes the residual stream, [batch, seq, embed]
// or [batch, embed], and returns a value of its shape.

#ifndef MGC_TESTS_RANDOM_MODELS_RANDOM_BLOCKS_H_
#define MGC_TESTS_RANDOM_MODELS_RANDOM_BLOCKS_H_

#include "absl/types/span.h"
#include "graph/ir/graph.h"
#include "tests/random_models/model_maker.h"

namespace mgc {

struct RandomBlock {
  const char* name;
  bool needs_sequence;
  ValueId (*make)(ModelMaker& m, ValueId x);
};

absl::Span<const RandomBlock> RandomBlocks();

// Causal attention as one op, with rotary positions or without, of fewer key heads now and then.
ValueId FusedAttention(ModelMaker& m, ValueId x);

// A norm of the last dim.
ValueId Norm(ModelMaker& m, ValueId x);

}  // namespace mgc

#endif  // MGC_TESTS_RANDOM_MODELS_RANDOM_BLOCKS_H_
