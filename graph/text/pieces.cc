#include "graph/text/pieces.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/suggest.h"
#include "graph/ir/assemble.h"

namespace mgc {
namespace {

constexpr int64_t kLeastInt = std::numeric_limits<int64_t>::min();
constexpr int64_t kMostInt = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxMeshEntries = 256;

// Reports the error of `status` at `place`; its message ends with its label.
bool FailAt(TokenReader* reader, TextPlace place, const absl::Status& status) {
  reader->diagnostics().Add(place, "", status.message());
  return false;
}

// `dp.1*cp*tp`
bool ReadProduct(TokenReader* reader, std::vector<std::string>* factors) {
  do {
    std::string name;
    if (!reader->ExpectName("the name of an axis", &name)) return false;
    factors->push_back(std::move(name));
  } while (reader->Accept("*") && factors->size() < kMaxMeshEntries);
  return true;
}

bool ReadMeshProducts(TokenReader* reader, NamedMesh* out) {
  do {
    const TextPlace place = reader->place();
    std::string name;
    std::vector<std::string> factors;
    if (!reader->ExpectName("the name of a product of axes", &name)) return false;
    if (!reader->Expect("=") || !ReadProduct(reader, &factors)) return false;
    absl::StatusOr<Mesh> mesh = out->mesh.WithProduct(name, factors);
    if (!mesh.ok()) {
      reader->diagnostics().Add(place, "text_c8", mesh.status().message());
      return false;
    }
    out->mesh = *std::move(mesh);
    if (out->mesh.Find(name).empty()) out->unit_axes.push_back(std::move(name));
  } while (reader->Accept(","));
  return true;
}

bool ReadDim(TokenReader* reader, Dim* out) {
  if (reader->Peek().kind != TokenKind::kInt) {
    if (!reader->ExpectName("a dim: its name or size", &out->name) || !reader->Expect("=")) {
      return false;
    }
  }
  if (!reader->ExpectInt("the size of a dim", 1, kMaxElements, &out->size)) return false;
  return !reader->Accept("%") ||
         reader->ExpectInt("the multiple of a dim", 1, kMaxDimMultiple, &out->multiple);
}

class ShardingReader {
 public:
  ShardingReader(TokenReader* reader, const NamedMesh& mesh) : reader_(reader), mesh_(mesh) {}

  bool Read(const TensorType& type, Sharding* out) {
    const TextPlace place = reader_->place();
    if (!ReadMeshName() || !reader_->Expect("[")) return false;
    while (!reader_->At("]")) {
      out->dims.emplace_back();
      if (!reader_->Accept("-") && !ReadAxes(&out->dims.back())) return false;
      if (!reader_->Accept(",")) break;
    }
    if (!reader_->Expect("]")) return false;
    AxisList sum, max;
    if (reader_->Accept("+") && !ReadAxes(&sum)) return false;
    if (reader_->Accept("^") && !ReadAxes(&max)) return false;
    if (reader_->Accept("/") && !ReadAxes(&out->storage)) return false;
    out->sum = sum.AsSet();
    out->max = max.AsSet();
    const absl::Status status = CheckShardingBounds(type, *out, mesh_.mesh);
    return status.ok() || FailAt(reader_, place, status);
  }

 private:
  bool ReadMeshName() {
    const Token& token = reader_->Peek();
    if (token.kind == TokenKind::kSymbol && token.text != mesh_.name) {
      return reader_->Fail(absl::StrCat("no mesh is named ", Describe(token)), "text_c8");
    }
    std::string name;
    return reader_->ExpectSymbol("a sharding", &name);
  }

  // Axes of a product in the order written; no axis twice in one sharding.
  bool ReadAxes(AxisList* out) {
    do {
      const TextPlace place = reader_->place();
      std::string name;
      if (!reader_->ExpectName("the name of an axis or `-`", &name)) return false;
      const AxisList axes = mesh_.mesh.Find(name);
      if (axes.empty() && !IsUnitAxis(name)) return FailUnknown(place, name);
      for (AxisId axis : axes) {
        if (used_.Contains(axis)) {
          return FailAt(reader_, place,
                        absl::InvalidArgumentError(absl::StrCat("axis ", mesh_.mesh.name(axis),
                                                                " occurs twice [sharding_c2]")));
        }
        used_.Add(axis);
        out->push_back(axis);
      }
    } while (reader_->Accept("*"));
    return true;
  }

  bool IsUnitAxis(absl::string_view name) const {
    return std::find(mesh_.unit_axes.begin(), mesh_.unit_axes.end(), name) != mesh_.unit_axes.end();
  }

  bool FailUnknown(TextPlace place, absl::string_view name) {
    std::vector<absl::string_view> names(mesh_.unit_axes.begin(), mesh_.unit_axes.end());
    for (const MeshAxis& axis : mesh_.mesh.axes()) names.push_back(axis.name);
    for (const MeshProduct& product : mesh_.mesh.products()) names.push_back(product.name);
    reader_->diagnostics().Add(
        place, "text_c8",
        absl::StrCat("the mesh has no axis ", NameText(name), DidYouMean(name, names)));
    return false;
  }

  TokenReader* reader_;
  const NamedMesh& mesh_;
  AxisSet used_;
};

bool ReadAttrValue(TokenReader* reader, AttrValue* out) {
  const Token& token = reader->Peek();
  if (token.kind == TokenKind::kInt) {
    *out = token.integer;
  } else if (token.kind == TokenKind::kReal) {
    *out = token.real;
  } else if (token.kind == TokenKind::kString) {
    *out = token.text;
  } else if (reader->Accept("[")) {
    std::vector<int64_t> list;
    while (!reader->At("]")) {
      list.emplace_back();
      if (!reader->ExpectInt("an integer", kLeastInt, kMostInt, &list.back())) return false;
      if (!reader->Accept(",")) break;
    }
    *out = std::move(list);
    return reader->Expect("]");
  } else {
    return reader->FailMissing("a number, a string or a list of integers");
  }
  reader->Next();
  return true;
}

}  // namespace

bool ReadMesh(TokenReader* reader, NamedMesh* out) {
  if (!reader->Accept("mesh")) return reader->FailExpecting("`mesh`");
  const TextPlace place = reader->place();
  if (!reader->ExpectSymbol("the name of the mesh, `@m`", &out->name)) return false;
  if (!reader->Expect("[")) return false;
  std::vector<MeshAxis> axes;
  while (!reader->At("]") && !reader->At(";") && axes.size() < kMaxMeshEntries) {
    MeshAxis axis;
    if (!reader->ExpectName("the name of an axis", &axis.name) || !reader->Expect("=") ||
        !reader->ExpectInt("the size of an axis", 1, kMaxWorldSize, &axis.size)) {
      return false;
    }
    axes.push_back(std::move(axis));
    if (!reader->Accept(",")) break;
  }
  absl::StatusOr<Mesh> mesh = Mesh::Create(axes);
  if (!mesh.ok()) {
    reader->diagnostics().Add(place, "text_c8", mesh.status().message());
    return false;
  }
  out->mesh = *std::move(mesh);
  for (const MeshAxis& axis : axes) {
    if (axis.size == 1) out->unit_axes.push_back(axis.name);
  }
  if (reader->Accept(";") && !ReadMeshProducts(reader, out)) return false;
  return reader->Expect("]");
}

bool ReadElementType(TokenReader* reader, const char* expected, DType* out) {
  const TextPlace place = reader->place();
  std::string name;
  if (!reader->ExpectName(expected, &name)) return false;
  if (ParseDType(name, out)) return true;
  reader->diagnostics().Add(
      place, "text_c4",
      absl::StrCat("unknown element type ", NameText(name), "; f32, f64, i64, bf16 and f16 exist"));
  return false;
}

bool ReadType(TokenReader* reader, TensorType* out) {
  const TextPlace place = reader->place();
  if (!ReadElementType(reader, "a type, such as `f32[8,16]`", &out->dtype)) return false;
  if (!reader->Expect("[")) return false;
  while (!reader->At("]")) {
    out->dims.emplace_back();
    if (!ReadDim(reader, &out->dims.back())) return false;
    if (!reader->Accept(",")) break;
  }
  if (!reader->Expect("]")) return false;
  const absl::Status status = CheckTypeBounds(*out);
  return status.ok() || FailAt(reader, place, status);
}

bool ReadSharding(TokenReader* reader, const NamedMesh& mesh, const TensorType& type,
                  Sharding* out) {
  return ShardingReader(reader, mesh).Read(type, out);
}

bool ReadAttrs(TokenReader* reader, Attrs* out) {
  if (!reader->Expect("{")) return false;
  while (!reader->At("}")) {
    const TextPlace place = reader->place();
    std::string name;
    AttrValue value;
    if (!reader->ExpectName("the name of an attribute", &name) || !reader->Expect("=") ||
        !ReadAttrValue(reader, &value)) {
      return false;
    }
    if (out->Find(name) != nullptr) {
      reader->diagnostics().Add(place, "text_c3",
                                absl::StrCat("attribute ", NameText(name), " is given twice"));
      return false;
    }
    out->Set(name, std::move(value));
    if (!reader->Accept(",")) break;
  }
  return reader->Expect("}");
}

}  // namespace mgc
