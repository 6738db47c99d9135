// How a value is laid out on the mesh.
//
// For each dim an ordered list of axes (major first): the dim is cut into equal pieces, rounded up,
// so that all ranks hold tiles of one size and only the last tiles may be short or empty. Per axis,
// whether a sum or a maximum over it is still *owed*: every rank of the axis holds a term. And
// *storage axes*, over which the local tile, flattened, is cut into equal padded pieces (ZeRO).
// Invariant: an axis occurs at most once in a sharding.

#ifndef MGC_GRAPH_TYPES_SHARDING_H_
#define MGC_GRAPH_TYPES_SHARDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/types/axis.h"
#include "graph/types/mesh.h"
#include "graph/types/tensor_type.h"

namespace mgc {

struct Sharding {
  std::vector<AxisList> dims;  // one per dim of the value
  AxisSet sum;                 // a sum over these axes is owed
  AxisSet max;                 // a maximum over these axes is owed
  AxisList storage;            // the flat local tile is cut over these, major first

  // The value whole on every rank.
  static Sharding Whole(int ndim) { return {std::vector<AxisList>(ndim), {}, {}, {}}; }

  AxisSet Owed() const { return sum | max; }
  AxisSet SplitAxes() const;  // axes that cut a dim
  AxisSet UsedAxes() const { return SplitAxes() | Owed() | storage.AsSet(); }

  friend bool operator==(const Sharding& a, const Sharding& b) {
    return a.dims == b.dims && a.sum == b.sum && a.max == b.max && a.storage == b.storage;
  }
  friend bool operator!=(const Sharding& a, const Sharding& b) { return !(a == b); }
};

// Elements of a dim that every rank makes room for: size / pieces, rounded up to whole multiples of
// dim.multiple (Megatron's padded vocabulary, reference function `vocab_size_with_padding`).
int64_t LocalSize(const Dim& dim, const AxisList& axes, const Mesh& mesh);

// Room for the local tile, dim by dim; storage axes make it one flat piece.
std::vector<int64_t> LocalShape(const TensorType& type, const Sharding& sharding, const Mesh& mesh);

// Product of LocalShape.
int64_t LocalElements(const TensorType& type, const Sharding& sharding, const Mesh& mesh);

// The piece of a dim that one rank holds: elements [begin, begin + valid), room for `room`.
struct DimPiece {
  int64_t begin = 0;
  int64_t valid = 0;
  int64_t room = 0;
};
DimPiece PieceOf(const Dim& dim, const AxisList& axes, const Mesh& mesh, int64_t rank);

// InvalidArgument when `sharding` does not fit `type` on `mesh`: another number of dims, an unknown
// axis, an axis used twice. Any dim may be cut unevenly (graph/types/even_cut.h).
absl::Status CheckSharding(const TensorType& type, const Sharding& sharding, const Mesh& mesh);

// Reads what ToString writes, with or without `@m` and brackets: `dp,tp,-`. Axis names may be those
// of products. InvalidArgument for other text and unknown axes.
absl::StatusOr<Sharding> ParseSharding(absl::string_view text, const Mesh& mesh);

// `tp.0*tp.1`, or `-` for no axis.
std::string ListText(const AxisList& axes, const Mesh& mesh);

// `@m[dp,tp.0*tp.1,-]+tp^cp/dp`: dims, then `+` sum axes, `^` max axes, `/` storage axes.
std::string ToString(const Sharding& sharding, const Mesh& mesh);

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_SHARDING_H_
