// The collectives that are a rank's own affair: a piece taken of what it holds whole, and a whole
// value that becomes a sum owed.

#ifndef MGC_RUNTIME_LOAD_LOCAL_MOVE_H_
#define MGC_RUNTIME_LOAD_LOCAL_MOVE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"
#include "kernels/kernel.h"

namespace mgc {

// What `shard_slice` or `lift` does on one rank, for the backend's kernel of that name.
// InvalidArgument for another op.
absl::StatusOr<LocalMove> LocalMoveOf(const TensorType& type, const Sharding& from,
                                      const Sharding& to, absl::string_view op, const Mesh& mesh,
                                      int64_t rank);

}  // namespace mgc

#endif  // MGC_RUNTIME_LOAD_LOCAL_MOVE_H_
