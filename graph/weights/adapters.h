// Adapters: parameters beside those of a model, and what is written down of them.

#ifndef MGC_GRAPH_WEIGHTS_ADAPTERS_H_
#define MGC_GRAPH_WEIGHTS_ADAPTERS_H_

#include "graph/types/attrs.h"

namespace mgc {

// Attribute of a parameter, 1 where it is of an adapter, which stands beside a model. Files of the
// model's weights have none of it.
inline constexpr char kAdapterAttr[] = "adapter";
inline bool IsOfAdapter(const Attrs& of_param) { return of_param.Int(kAdapterAttr, 0) != 0; }

// What a plan records of an adapter among its options, as `--lora-rank`, and checkpoints of its
// runs among theirs, as `lora-rank`: the rank, the factor's numerator, and names of modules with
// commas between.
inline constexpr char kAdapterRank[] = "lora-rank";
inline constexpr char kAdapterAlpha[] = "lora-alpha";
inline constexpr char kAdapterTargets[] = "lora-targets";

}  // namespace mgc

#endif  // MGC_GRAPH_WEIGHTS_ADAPTERS_H_
