// Types and shardings of an instruction's slots, as the op table's functions take them.

#ifndef MGC_GRAPH_VERIFY_COMMON_SLOT_LISTS_H_
#define MGC_GRAPH_VERIFY_COMMON_SLOT_LISTS_H_

#include <vector>

#include "graph/plan/plan.h"

namespace mgc {

// They point into `segment`.
inline std::vector<const TensorType*> TypesOf(const Segment& segment,
                                              const std::vector<int>& slots) {
  std::vector<const TensorType*> types;
  types.reserve(slots.size());
  for (int slot : slots) types.push_back(&segment.slots[static_cast<size_t>(slot)].type);
  return types;
}

inline std::vector<const Sharding*> ShardingsOf(const Segment& segment,
                                                const std::vector<int>& slots) {
  std::vector<const Sharding*> shardings;
  shardings.reserve(slots.size());
  for (int slot : slots) shardings.push_back(&segment.slots[static_cast<size_t>(slot)].sharding);
  return shardings;
}

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_COMMON_SLOT_LISTS_H_
