#include "graph/verify/tile_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

constexpr int64_t kScalarBytes = 8;

// Whether two layouts make the same tiles of the same tensor. Names of dims do not count.
// A sum owed over the pipeline is one that other stages' memory
// contributes to (zeros, if nothing), so it need not have been owed inside of the stage.
bool SameLayout(const TileLayout& a, const TileLayout& b, AxisSet pipeline) {
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

std::string ShownLayout(const TileLayout& layout, const Mesh& mesh) {
  return absl::StrCat("`", NameForLayer(*layout.name, layout.layer), "` ",
                      NameOf(layout.type->dtype), " ", ToString(*layout.sharding, mesh));
}

}  // namespace

void TileStore::Zero(Range range) {
  Poison(range);
  if (range.begin < range.end) stored_[range.begin] = {range.end, true, {}, {}};
}

void TileStore::Write(Range range, const TileLayout& layout, Tiles tiles) {
  Poison(range);
  if (range.begin < range.end) {
    stored_[range.begin] = {range.end, false, layout, std::move(tiles)};
  }
}

void TileStore::Poison(Range range) {
  scratch_.clear();
  if (range.begin >= range.end) return;
  auto it = stored_.upper_bound(range.begin);
  if (it != stored_.begin()) --it;
  while (it != stored_.end() && it->first < range.end) {
    if (it->second.end <= range.begin) {
      ++it;
      continue;
    }
    const int64_t begin = it->first;
    const int64_t end = it->second.end;
    const bool zero = it->second.zero;
    it = stored_.erase(it);
    if (!zero) continue;  // a tensor that is damaged anywhere is damaged
    if (begin < range.begin) stored_[begin] = {range.begin, true, {}, {}};
    if (end > range.end) it = stored_.insert({range.end, {end, true, {}, {}}}).first;
  }
}

bool TileStore::IsZero(Range range) const {
  auto it = stored_.upper_bound(range.begin);
  if (it == stored_.begin()) return false;
  --it;
  return it->second.zero && it->second.end >= range.end;
}

Tiles* TileStore::MakeScratch(const TileLayout& layout) {
  const std::vector<int64_t> shape = LocalShape(*layout.type, *layout.sharding, mesh_);
  scratch_.emplace_back(static_cast<size_t>(num_ranks_),
                        ResidueTensor::Make(shape, layout.type->dtype == DType::kI64));
  return &scratch_.back();
}

bool TileStore::Compose(Range range, const TileLayout& layout) {
  const int64_t n = (range.end - range.begin) / kScalarBytes;
  if (layout.type->dtype != DType::kF64 || layout.type->dims.size() != 1 ||
      layout.type->dims[0].size != n || !layout.sharding->SplitAxes().empty()) {
    return false;
  }
  Tiles* made = MakeScratch(layout);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = range.begin + i * kScalarBytes;
    if (IsZero({at, at + kScalarBytes})) continue;
    const auto it = stored_.find(at);
    if (it == stored_.end() || it->second.end != at + kScalarBytes ||
        !it->second.layout.type->dims.empty() ||
        it->second.layout.sharding->Owed() - PipelineOf(mesh_) !=
            layout.sharding->Owed() - PipelineOf(mesh_)) {
      return false;
    }
    for (size_t r = 0; r < made->size(); ++r) {
      (*made)[r].real[static_cast<size_t>(i)] = it->second.tiles[r].real[0];
    }
  }
  return true;
}

std::string TileStore::WhatIsThere(Range range) const {
  std::string text;
  auto it = stored_.upper_bound(range.begin);
  if (it != stored_.begin()) --it;
  for (; it != stored_.end() && it->first < range.end; ++it) {
    if (it->second.end <= range.begin) continue;
    absl::StrAppend(&text, text.empty() ? "; there is " : ", ",
                    it->second.zero ? "zeroed memory" : ShownLayout(it->second.layout, mesh_),
                    " at [", it->first, ", ", it->second.end, ")");
    if (text.size() > 300) break;
  }
  return text.empty() ? "; nothing is there" : text;
}

absl::StatusOr<const Tiles*> TileStore::Read(Range range, const TileLayout& layout) {
  const auto it = stored_.find(range.begin);
  if (it != stored_.end() && !it->second.zero && it->second.end == range.end) {
    if (SameLayout(it->second.layout, layout, PipelineOf(mesh_))) return &it->second.tiles;
    return absl::InvalidArgumentError(absl::StrCat("reads ", ShownLayout(layout, mesh_), " where ",
                                                   ShownLayout(it->second.layout, mesh_),
                                                   " was written [meaning_v3]"));
  }
  if (IsZero(range)) return MakeScratch(layout);
  if (Compose(range, layout)) return &scratch_.back();
  return absl::InvalidArgumentError(absl::StrCat(
      "reads ", ShownLayout(layout, mesh_), " at [", range.begin, ", ", range.end,
      "), which was not written or has been overwritten", WhatIsThere(range), " [meaning_v2]"));
}

}  // namespace mgc
