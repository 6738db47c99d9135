#include "graph/types/sharding.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

std::string SetText(AxisSet axes, const Mesh& mesh) {
  std::string text;
  for (AxisId axis : axes) absl::StrAppend(&text, text.empty() ? "" : "*", mesh.name(axis));
  return text;
}

absl::StatusOr<AxisList> ParseList(absl::string_view text, const Mesh& mesh) {
  AxisList axes;
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text == "-") return axes;
  for (absl::string_view name : absl::StrSplit(text, '*')) {
    const AxisList found = mesh.Find(name);
    if (found.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown axis `", name, "` [sharding_c4]"));
    }
    for (AxisId axis : found) {
      if (axes.Contains(axis)) {
        return absl::InvalidArgumentError(
            absl::StrCat("axis `", name, "` occurs twice [sharding_c2]"));
      }
      axes.push_back(axis);
    }
  }
  return axes;
}

// Cuts `mark` and what follows it off the end of `text`.
absl::StatusOr<AxisList> ParseTail(char mark, const Mesh& mesh, absl::string_view* text) {
  const size_t at = text->rfind(mark);
  if (at == absl::string_view::npos) return AxisList();
  const absl::string_view tail = text->substr(at + 1);
  *text = text->substr(0, at);
  return ParseList(tail, mesh);
}

}  // namespace

absl::StatusOr<Sharding> ParseSharding(absl::string_view text, const Mesh& mesh) {
  Sharding sharding;
  MGC_ASSIGN_OR_RETURN(sharding.storage, ParseTail('/', mesh, &text));
  MGC_ASSIGN_OR_RETURN(const AxisList max, ParseTail('^', mesh, &text));
  MGC_ASSIGN_OR_RETURN(const AxisList sum, ParseTail('+', mesh, &text));
  sharding.max = max.AsSet();
  sharding.sum = sum.AsSet();
  if (absl::ConsumePrefix(&text, "@m[") && !absl::ConsumeSuffix(&text, "]")) {
    return absl::InvalidArgumentError("a sharding lacks its closing `]` [sharding_c4]");
  }
  if (text.empty()) return sharding;
  for (absl::string_view dim : absl::StrSplit(text, ',')) {
    MGC_ASSIGN_OR_RETURN(const AxisList axes, ParseList(dim, mesh));
    sharding.dims.push_back(axes);
  }
  return sharding;
}

AxisSet Sharding::SplitAxes() const {
  AxisSet axes;
  for (const AxisList& list : dims) axes |= list.AsSet();
  return axes;
}

int64_t LocalSize(const Dim& dim, const AxisList& axes, const Mesh& mesh) {
  if (axes.empty() && dim.multiple == 1) return dim.size;
  const int64_t quantum = mesh.Size(axes) * dim.multiple;
  return (dim.size + quantum - 1) / quantum * dim.multiple;
}

std::vector<int64_t> LocalShape(const TensorType& type, const Sharding& sharding,
                                const Mesh& mesh) {
  std::vector<int64_t> shape(type.dims.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] = LocalSize(type.dims[i], sharding.dims[i], mesh);
  }
  if (sharding.storage.empty()) return shape;
  return {LocalSize({NumElements(shape), ""}, sharding.storage, mesh)};
}

int64_t LocalElements(const TensorType& type, const Sharding& sharding, const Mesh& mesh) {
  return NumElements(LocalShape(type, sharding, mesh));
}

DimPiece PieceOf(const Dim& dim, const AxisList& axes, const Mesh& mesh, int64_t rank) {
  DimPiece piece;
  piece.room = LocalSize(dim, axes, mesh);
  piece.begin = mesh.ShardIndex(rank, axes) * piece.room;
  piece.valid = std::clamp<int64_t>(dim.size - piece.begin, 0, piece.room);
  return piece;
}

absl::Status CheckSharding(const TensorType& type, const Sharding& sharding, const Mesh& mesh) {
  if (sharding.dims.size() != type.dims.size()) {
    return absl::InvalidArgumentError(absl::StrCat("sharding has ", sharding.dims.size(),
                                                   " dims, the value ", type.dims.size(),
                                                   " [sharding_c1]"));
  }
  if (!mesh.AllAxes().ContainsAll(sharding.UsedAxes())) {
    return absl::InvalidArgumentError("an axis is not of this mesh [sharding_c4]");
  }
  int used = sharding.sum.size() + sharding.max.size() + sharding.storage.size();
  for (const AxisList& axes : sharding.dims) used += axes.size();
  if (used != sharding.UsedAxes().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an axis occurs twice in ", ToString(sharding, mesh), " [sharding_c2]"));
  }
  return absl::OkStatus();
}

std::string ListText(const AxisList& axes, const Mesh& mesh) {
  std::string text;
  for (AxisId axis : axes) absl::StrAppend(&text, text.empty() ? "" : "*", mesh.name(axis));
  return text.empty() ? "-" : text;
}

std::string ToString(const Sharding& sharding, const Mesh& mesh) {
  std::string text = "@m[";
  for (size_t i = 0; i < sharding.dims.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", ListText(sharding.dims[i], mesh));
  }
  text += "]";
  if (!sharding.sum.empty()) absl::StrAppend(&text, "+", SetText(sharding.sum, mesh));
  if (!sharding.max.empty()) absl::StrAppend(&text, "^", SetText(sharding.max, mesh));
  if (!sharding.storage.empty()) absl::StrAppend(&text, "/", ListText(sharding.storage, mesh));
  return text;
}

}  // namespace mgc
