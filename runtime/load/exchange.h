// What a collective moves between the tiles of a group of ranks that share an address space.
//
// A tile is seen as [outer, pieces along the dim concerned, inner]; member m of the group holds or
// receives piece `piece[m]` of it. A piece is `room` long, the whole `whole`; only the last pieces
// may stick out of the whole (a padded vocabulary, a flat tile cut for ZeRO): what sticks out is
// dropped by a gather and zero after a scatter, as in reference evaluation (graph/eval/eval.h).

#ifndef MGC_RUNTIME_LOAD_EXCHANGE_H_
#define MGC_RUNTIME_LOAD_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "graph/ir/collective.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct Exchange {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  AxisSet axes;  // of the group
  DType dtype = DType::kF32;
  int64_t outer = 1;
  int64_t whole = 0;
  int64_t room = 0;
  int64_t inner = 1;
  // Of an all-to-all: its second dim, which becomes split, `middle` elements away from the first.
  bool second_is_minor = true;
  int64_t middle = 1;
  int64_t second_whole = 0;
  int64_t second_room = 0;
  std::vector<int> piece;  // by position in the group

  friend bool operator==(const Exchange& a, const Exchange& b);
};

// What `collective`, which leads from one sharding of a value to the other, moves.
Exchange ExchangeOf(const Collective& collective, const TensorType& type, const Sharding& from,
                    const Sharding& to, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_EXCHANGE_H_
