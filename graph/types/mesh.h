// The device mesh: how ranks are numbered by named axes, and which ranks form a group.
//
// A mesh is a list of *atomic axes*, fastest first: rank = sum of coordinate(i) * stride(i),
// stride(0) = 1. With the axes of an order string such as `tp-cp-ep-dp-pp` this is the numbering of
// Megatron's RankGenerator.
//
// An axis may be split into sub-axes named `tp.0`, `tp.1`, ...; `.0` is the major one, that is the
// *slower* varying with the rank, so that the coordinate on `tp` is the mixed-radix number (tp.0,
// tp.1) and splitting changes neither ranks nor groups of `tp`. The unsplit name stays usable: it
// stands for the product of its sub-axes.
// A mesh may also name further ordered products, e.g. `ep = dp.1 * cp * tp`, major first like a
// dim's list of axes.
//
// Shardings hold atomic axes; names are resolved once, through Find(). An axis of one rank is never
// stored: a name that the mesh does not hold means one rank, and Find() answers with the empty
// list.

#ifndef MGC_GRAPH_TYPES_MESH_H_
#define MGC_GRAPH_TYPES_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/types/axis.h"

namespace mgc {

// Ranks a mesh may have at most; keeps every rank computation far from overflow and every group
// list in memory.
inline constexpr int64_t kMaxWorldSize = int64_t{1} << 20;

// The order of axes when none is given, leftmost fastest.
inline constexpr char kDefaultAxisOrder[] = "tp-cp-ep-dp-pp";

struct MeshAxis {
  std::string name;  // `tp`, or `tp.0` for a sub-axis
  int64_t size = 1;
};

inline bool operator==(const MeshAxis& a, const MeshAxis& b) {
  return a.name == b.name && a.size == b.size;
}

// A name for an ordered product of axes, major first.
struct MeshProduct {
  std::string name;
  AxisList axes;
};

inline bool operator==(const MeshProduct& a, const MeshProduct& b) {
  return a.name == b.name && a.axes == b.axes;
}

// Immutable. The default mesh has no axis and one rank.
class Mesh {
 public:
  Mesh() = default;

  // A mesh of `axes`, fastest first; axes of size 1 are dropped. InvalidArgument when a name is
  // malformed or used twice, a size is below 1, sub-axes of a name are not numbered 0..n-1 without
  // gaps, there are more than kMaxAxes axes or more than kMaxWorldSize ranks, or a sub-axis is of
  // size 1.
  static absl::StatusOr<Mesh> Create(absl::Span<const MeshAxis> axes);

  // A mesh from an order string (axis names joined by '-', leftmost fastest) and sizes in any
  // order. An axis that has a size above 1 must be in the string; one in the string without a size
  // has size 1.
  static absl::StatusOr<Mesh> FromOrder(absl::string_view order, absl::Span<const MeshAxis> sizes);

  // This mesh with `axis` split into sub-axes of the given sizes, major (slowest) first. Their
  // product must be the axis' size, and each must be at least 2. Axis numbers above the split one
  // move up.
  absl::StatusOr<Mesh> Split(absl::string_view axis, absl::Span<const int64_t> sizes) const;

  // This mesh with a further named product of existing axes or products, major first, each atomic
  // axis at most once.
  absl::StatusOr<Mesh> WithProduct(absl::string_view name,
                                   absl::Span<const std::string> factors) const;

  int num_axes() const { return static_cast<int>(axes_.size()); }
  int64_t world_size() const { return world_size_; }
  const std::vector<MeshAxis>& axes() const { return axes_; }
  // Products given by WithProduct, in the order given; those implied by sub-axes are not listed.
  const std::vector<MeshProduct>& products() const { return products_; }
  const std::string& name(AxisId axis) const { return axes_[static_cast<size_t>(axis)].name; }
  int64_t size(AxisId axis) const { return axes_[static_cast<size_t>(axis)].size; }
  int64_t stride(AxisId axis) const { return strides_[static_cast<size_t>(axis)]; }
  AxisSet AllAxes() const { return AxisSet::FirstN(num_axes()); }

  // The atomic axes behind a name (axis, split axis or product), major first; empty when the mesh
  // has no such name.
  AxisList Find(absl::string_view name) const;
  // The number of an atomic axis of exactly this name, or -1.
  AxisId FindAtomic(absl::string_view name) const;

  // Number of ranks along the axes: the product of their sizes, 1 for none.
  int64_t Size(AxisSet axes) const;
  int64_t Size(const AxisList& axes) const { return Size(axes.AsSet()); }

  int64_t Coordinate(int64_t rank, AxisId axis) const { return rank / stride(axis) % size(axis); }
  // One coordinate per axis, fastest first.
  std::vector<int64_t> Coordinates(int64_t rank) const;
  // Inverse of Coordinates; `coordinates` has num_axes() entries, each in range.
  int64_t RankAt(absl::Span<const int64_t> coordinates) const;

  // Which piece of a dim cut over `axes` (major first) this rank holds: the mixed-radix number of
  // its coordinates.
  int64_t ShardIndex(int64_t rank, const AxisList& axes) const;

  // The ranks that differ from `rank` only on `axes`, `rank` included, ascending.
  std::vector<int64_t> Group(int64_t rank, AxisSet axes) const;
  // Every group over `axes`: ranks ascend inside a group; groups are ordered by the coordinates on
  // the other axes, first axis fastest, as Megatron's RankGenerator gives them. With no axes: one
  // group per rank.
  std::vector<std::vector<int64_t>> Groups(AxisSet axes) const;
  // Position of `rank` in Group(rank, axes).
  int64_t GroupPosition(int64_t rank, AxisSet axes) const;

  // Name of a group's axes for people: `tp`, `tp-dp`; fastest first, sub-axes of a wholly included
  // axis joined again, a named product by its name if it is exactly this set. `-` for no axes.
  std::string GroupName(AxisSet axes) const;

  // `mesh @m [tp=4, dp=2]`: atomic axes fastest first (sub-axes therefore highest number first,
  // `tp.1=2, tp.0=2`); named products follow after a semicolon, factors major first: `[tp=2,
  // dp.1=2, dp.0=2; ep=dp.1*tp]`.
  std::string ToString(absl::string_view mesh_name = "m") const;

  friend bool operator==(const Mesh& a, const Mesh& b) {
    return a.axes_ == b.axes_ && a.products_ == b.products_;
  }
  friend bool operator!=(const Mesh& a, const Mesh& b) { return !(a == b); }

 private:
  std::vector<MeshAxis> axes_;    // fastest first, every size >= 2
  std::vector<int64_t> strides_;  // as axes_
  std::vector<MeshProduct> products_;
  int64_t world_size_ = 1;
};

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_MESH_H_
