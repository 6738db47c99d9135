#include "graph/types/mesh.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace mgc {
namespace {

// `tp` of `tp.1`; the whole name for an axis that is no sub-axis.
absl::string_view BaseName(absl::string_view name) { return name.substr(0, name.find('.')); }

bool IsSubAxis(absl::string_view name) { return name.find('.') != absl::string_view::npos; }

// Number after the dot of a sub-axis' well-formed name.
int SubAxisNumber(absl::string_view name) {
  int number = -1;
  return absl::SimpleAtoi(name.substr(name.find('.') + 1), &number) ? number : -1;
}

// A letter or `_`, then letters, digits, `_`.
bool IsIdentifier(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

bool IsAxisName(absl::string_view name) {
  if (!IsIdentifier(BaseName(name))) return false;
  if (!IsSubAxis(name)) return true;
  int number = SubAxisNumber(name);
  // The second test refuses other spellings of the same number: `tp.01`, `tp.+1`.
  return number >= 0 && name == absl::StrCat(BaseName(name), ".", number);
}

absl::Status CheckAxis(const MeshAxis& axis) {
  if (!IsAxisName(axis.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh: '", absl::CHexEscape(axis.name), "' is no name of an axis"));
  }
  const int64_t least = IsSubAxis(axis.name) ? 2 : 1;
  if (axis.size < least) {
    return absl::InvalidArgumentError(absl::StrCat("mesh: axis ", axis.name, " has size ",
                                                   axis.size, ", must be at least ", least));
  }
  return absl::OkStatus();
}

absl::Status CheckAxisNames(absl::Span<const MeshAxis> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    absl::Status status = CheckAxis(axes[i]);
    if (!status.ok()) return status;
    for (size_t j = 0; j < i; ++j) {
      const bool clash =
          axes[i].name == axes[j].name || (BaseName(axes[i].name) == BaseName(axes[j].name) &&
                                           IsSubAxis(axes[i].name) != IsSubAxis(axes[j].name));
      if (clash) {
        return absl::InvalidArgumentError(
            absl::StrCat("mesh: axes ", axes[j].name, " and ", axes[i].name, " share a name"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSubAxisNumbers(absl::Span<const MeshAxis> axes) {
  for (const MeshAxis& axis : axes) {
    if (!IsSubAxis(axis.name)) continue;
    const auto count = std::count_if(axes.begin(), axes.end(), [&](const MeshAxis& other) {
      return BaseName(other.name) == BaseName(axis.name);
    });
    if (SubAxisNumber(axis.name) >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh: ", axis.name, " exists but ", BaseName(axis.name), " has only ",
                       count, " sub-axes, which are numbered from 0 without gaps"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Mesh> Mesh::Create(absl::Span<const MeshAxis> axes) {
  absl::Status status = CheckAxisNames(axes);
  if (status.ok()) status = CheckSubAxisNumbers(axes);
  if (!status.ok()) return status;
  Mesh mesh;
  for (const MeshAxis& axis : axes) {
    if (axis.size == 1) continue;
    mesh.axes_.push_back(axis);
    mesh.strides_.push_back(mesh.world_size_);
    if (axis.size > kMaxWorldSize / mesh.world_size_) {
      return absl::InvalidArgumentError(absl::StrCat("mesh: more than ", kMaxWorldSize, " ranks"));
    }
    mesh.world_size_ *= axis.size;
  }
  if (mesh.num_axes() > kMaxAxes) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh: ", mesh.num_axes(), " axes, at most ", kMaxAxes, " are possible"));
  }
  return mesh;
}

absl::StatusOr<Mesh> Mesh::FromOrder(absl::string_view order, absl::Span<const MeshAxis> sizes) {
  std::vector<MeshAxis> axes;
  for (absl::string_view name : absl::StrSplit(order, '-')) {
    axes.push_back({std::string(name), 1});
  }
  absl::Status status = CheckAxisNames(sizes);
  if (!status.ok()) return status;
  for (const MeshAxis& given : sizes) {
    auto it = std::find_if(axes.begin(), axes.end(),
                           [&](const MeshAxis& axis) { return axis.name == given.name; });
    if (it != axes.end()) {
      it->size = given.size;
    } else if (given.size > 1) {
      return absl::InvalidArgumentError(absl::StrCat("order '", absl::CHexEscape(order),
                                                     "' does not name axis ", given.name,
                                                     ", whose size is ", given.size));
    }
  }
  return Create(axes);
}

absl::StatusOr<Mesh> Mesh::Split(absl::string_view axis, absl::Span<const int64_t> sizes) const {
  const AxisId split = FindAtomic(axis);
  if (split < 0 || IsSubAxis(axis)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh: no axis '", absl::CHexEscape(axis), "' to split"));
  }
  int64_t remaining = size(split);
  for (int64_t part : sizes) {
    if (part < 2 || remaining % part != 0) {
      return absl::InvalidArgumentError(absl::StrCat("mesh: axis ", axis, " of size ", size(split),
                                                     " is no product of ",
                                                     absl::StrJoin(sizes, " * ")));
    }
    remaining /= part;
  }
  if (remaining != 1 || sizes.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("mesh: splitting axis ", axis, " of size ",
                                                   size(split), " into ",
                                                   absl::StrJoin(sizes, " * ")));
  }
  std::vector<MeshAxis> axes(axes_.begin(), axes_.begin() + split);
  for (size_t i = sizes.size(); i-- > 0;) axes.push_back({absl::StrCat(axis, ".", i), sizes[i]});
  axes.insert(axes.end(), axes_.begin() + split + 1, axes_.end());
  absl::StatusOr<Mesh> mesh = Create(axes);
  if (!mesh.ok()) return mesh;
  for (const MeshProduct& product : products_) {
    MeshProduct moved{product.name, {}};
    for (AxisId factor : product.axes) moved.axes.Append(mesh->Find(name(factor)));
    mesh->products_.push_back(std::move(moved));
  }
  return mesh;
}

absl::StatusOr<Mesh> Mesh::WithProduct(absl::string_view name,
                                       absl::Span<const std::string> factors) const {
  if (!IsIdentifier(name) || !Find(name).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mesh: '", absl::CHexEscape(name), "' is no name, or is already an axis or a product"));
  }
  MeshProduct product{std::string(name), {}};
  for (const std::string& factor : factors) {
    const AxisList axes = Find(factor);
    if (product.axes.AsSet().Intersects(axes.AsSet())) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh: product ", name, " uses an axis of ", factor, " twice"));
    }
    product.axes.Append(axes);
  }
  Mesh mesh = *this;
  if (!product.axes.empty()) mesh.products_.push_back(std::move(product));
  return mesh;
}

AxisId Mesh::FindAtomic(absl::string_view name) const {
  for (AxisId i = 0; i < num_axes(); ++i) {
    if (this->name(i) == name) return i;
  }
  return -1;
}

AxisList Mesh::Find(absl::string_view name) const {
  AxisList found;
  const AxisId atomic = FindAtomic(name);
  if (atomic >= 0) {
    found.push_back(atomic);
    return found;
  }
  for (const MeshProduct& product : products_) {
    if (product.name == name) return product.axes;
  }
  for (int number = 0; number < num_axes(); ++number) {
    const AxisId sub = FindAtomic(absl::StrCat(name, ".", number));
    if (sub >= 0) found.push_back(sub);
  }
  return found;
}

int64_t Mesh::Size(AxisSet axes) const {
  int64_t product = 1;
  for (AxisId axis : axes) product *= size(axis);
  return product;
}

std::vector<int64_t> Mesh::Coordinates(int64_t rank) const {
  std::vector<int64_t> coordinates;
  coordinates.reserve(axes_.size());
  for (AxisId axis = 0; axis < num_axes(); ++axis) coordinates.push_back(Coordinate(rank, axis));
  return coordinates;
}

int64_t Mesh::RankAt(absl::Span<const int64_t> coordinates) const {
  int64_t rank = 0;
  for (AxisId axis = 0; axis < num_axes(); ++axis) {
    rank += coordinates[static_cast<size_t>(axis)] * stride(axis);
  }
  return rank;
}

int64_t Mesh::ShardIndex(int64_t rank, const AxisList& axes) const {
  int64_t index = 0;
  for (AxisId axis : axes) index = index * size(axis) + Coordinate(rank, axis);
  return index;
}

std::vector<int64_t> Mesh::Group(int64_t rank, AxisSet axes) const {
  for (AxisId axis : axes) rank -= Coordinate(rank, axis) * stride(axis);
  std::vector<int64_t> group = {rank};
  // Slower axes are appended after faster ones, so the ranks come out ascending.
  for (AxisId axis : axes) {
    const size_t inner = group.size();
    for (int64_t c = 1; c < size(axis); ++c) {
      for (size_t i = 0; i < inner; ++i) group.push_back(group[i] + c * stride(axis));
    }
  }
  return group;
}

std::vector<std::vector<int64_t>> Mesh::Groups(AxisSet axes) const {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t first : Group(0, AllAxes() - axes)) groups.push_back(Group(first, axes));
  return groups;
}

int64_t Mesh::GroupPosition(int64_t rank, AxisSet axes) const {
  int64_t position = 0;
  int64_t stride = 1;
  for (AxisId axis : axes) {
    position += Coordinate(rank, axis) * stride;
    stride *= size(axis);
  }
  return position;
}

std::string Mesh::GroupName(AxisSet axes) const {
  if (axes.empty()) return "-";
  std::vector<absl::string_view> names;
  AxisSet left = axes;
  for (AxisId axis : axes) {
    if (!left.Contains(axis)) continue;
    const absl::string_view base = BaseName(name(axis));
    const AxisSet whole = Find(base).AsSet();
    const bool join = IsSubAxis(name(axis)) && axes.ContainsAll(whole);
    names.push_back(join ? base : absl::string_view(name(axis)));
    left -= join ? whole : AxisSet{axis};
  }
  if (names.size() > 1) {
    for (const MeshProduct& product : products_) {
      if (product.axes.AsSet() == axes) return product.name;
    }
  }
  return absl::StrJoin(names, "-");
}

std::string Mesh::ToString(absl::string_view mesh_name) const {
  std::string text = absl::StrCat("mesh @", mesh_name, " [");
  absl::StrAppend(&text, absl::StrJoin(axes_, ", ", [](std::string* out, const MeshAxis& axis) {
    absl::StrAppend(out, axis.name, "=", axis.size);
  }));
  const char* separator = "; ";
  for (const MeshProduct& product : products_) {
    absl::StrAppend(&text, separator, product.name, "=",
                    absl::StrJoin(product.axes, "*", [this](std::string* out, AxisId axis) {
                      absl::StrAppend(out, name(axis));
                    }));
    separator = ", ";
  }
  return absl::StrCat(text, "]");
}

}  // namespace mgc
