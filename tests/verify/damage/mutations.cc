#include "tests/verify/damage/mutations.h"

#include <iterator>
#include <utility>

namespace mgc {

std::vector<MutationKind> AllMutations() {
  std::vector<MutationKind> all;
  for (auto* family : {CollectiveMutations, SharedMutations, ShardingMutations, SlotMutations,
                       InstrMutations, AttributeMutations, ListMutations, TransferMutations,
                       MemoryMutations, OverlapMutations, ParameterMutations, ConstantMutations,
                       InPlaceMutations, StatedMutations, LeftOutMutations, ContextMutations}) {
    std::vector<MutationKind> kinds = family();
    all.insert(all.end(), std::make_move_iterator(kinds.begin()),
               std::make_move_iterator(kinds.end()));
  }
  return all;
}

}  // namespace mgc
