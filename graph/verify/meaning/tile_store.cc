#include "graph/verify/meaning/tile_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/verify/common/memory_ranges.h"

namespace mgc {
namespace {

constexpr int64_t kScalarBytes = 8;

// Whether two shardings make the same tiles of the same tensor. Names of dims do not count.
// A sum owed over the pipeline is one that other stages' memory
// contributes to (zeros, if nothing), so it need not have been owed inside of the stage.
bool SameView(const TileView& a, const TileView& b, AxisSet pipeline) {
  Sharding left = *a.sharding;
  Sharding right = *b.sharding;
  left.sum -= pipeline;
  right.sum -= pipeline;
  return a.type->dtype == b.type->dtype && SizesOf(*a.type) == SizesOf(*b.type) && left == right;
}

AxisSet PipelineOf(const Mesh& mesh) {
  AxisSet axes;
  if (PipelineAxis(mesh) >= 0) axes.Add(PipelineAxis(mesh));
  return axes;
}

std::string ShownView(const TileView& view, const Mesh& mesh) {
  return absl::StrCat("`", NameForLayer(*view.name, view.layer), "` ", NameOf(view.type->dtype),
                      " ", ToString(*view.sharding, mesh));
}

}  // namespace

void TileStore::Put(Range range, Stored stored) {
  Poison(range);
  stored_.Put(range, std::move(stored));
}

void TileStore::Poison(Range range) {
  scratch_.clear();
  // A tensor that is damaged anywhere is damaged; the rest of zeros are zeros.
  stored_.Erase(range, [](const Stored* cut) { return cut->zero; });
}

bool TileStore::IsZero(Range range) const {
  const auto* found = stored_.Find(range);
  return found != nullptr && found->value.zero && found->range.begin <= range.begin &&
         range.end <= found->range.end;
}

const TileStore::Stored* TileStore::Exactly(Range range) const {
  const auto* found = stored_.Find(range);
  return found != nullptr && !found->value.zero && Equal(found->range, range) ? &found->value
                                                                              : nullptr;
}

Tiles* TileStore::MakeScratch(const TileView& view) {
  const std::vector<int64_t> shape = LocalShape(*view.type, *view.sharding, mesh_);
  scratch_.emplace_back(static_cast<size_t>(num_ranks_),
                        ResidueTensor::Make(shape, view.type->dtype == DType::kI64));
  return &scratch_.back();
}

bool TileStore::Compose(Range range, const TileView& view) {
  const int64_t n = (range.end - range.begin) / kScalarBytes;
  if (view.type->dtype != DType::kF64 || view.type->dims.size() != 1 ||
      view.type->dims[0].size != n || !view.sharding->SplitAxes().empty()) {
    return false;
  }
  Tiles* made = MakeScratch(view);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = range.begin + i * kScalarBytes;
    if (IsZero({at, at + kScalarBytes})) continue;
    const Stored* scalar = Exactly({at, at + kScalarBytes});
    if (scalar == nullptr || !scalar->view.type->dims.empty() ||
        scalar->view.sharding->Owed() - PipelineOf(mesh_) !=
            view.sharding->Owed() - PipelineOf(mesh_)) {
      return false;
    }
    for (size_t r = 0; r < made->size(); ++r) {
      (*made)[r].real[static_cast<size_t>(i)] = scalar->tiles[r].real[0];
    }
  }
  return true;
}

std::string TileStore::WhatIsThere(Range range) const {
  std::string text;
  for (const auto& [at, stored] : stored_.Overlapping(range)) {
    absl::StrAppend(&text, text.empty() ? "; there is " : ", ",
                    stored.zero ? "zeroed memory" : ShownView(stored.view, mesh_), " at ",
                    ToString(at));
    if (text.size() > 300) break;
  }
  return text.empty() ? "; nothing is there" : text;
}

absl::StatusOr<const Tiles*> TileStore::Read(Range range, const TileView& view) {
  if (const Stored* found = Exactly(range)) {
    if (SameView(found->view, view, PipelineOf(mesh_))) return &found->tiles;
    if (Compose(range, view)) return &scratch_.back();  // a vector of one entry
    return absl::InvalidArgumentError(absl::StrCat("reads ", ShownView(view, mesh_), " where ",
                                                   ShownView(found->view, mesh_),
                                                   " was written [meaning_v3]"));
  }
  if (IsZero(range)) return MakeScratch(view);
  if (Compose(range, view)) return &scratch_.back();
  return absl::InvalidArgumentError(absl::StrCat(
      "reads ", ShownView(view, mesh_), " at ", ToString(range),
      ", which was not written or has been overwritten", WhatIsThere(range), " [meaning_v2]"));
}

}  // namespace mgc
