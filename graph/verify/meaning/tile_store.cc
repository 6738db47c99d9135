#include "graph/verify/meaning/tile_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

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

void TileStore::Zero(Range range) {
  Poison(range);
  if (range.begin < range.end) stored_[range.begin] = {range.end, true, {}, {}};
}

void TileStore::Write(Range range, const TileView& view, Tiles tiles) {
  Poison(range);
  if (range.begin < range.end) {
    stored_[range.begin] = {range.end, false, view, std::move(tiles)};
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
    const auto it = stored_.find(at);
    if (it == stored_.end() || it->second.end != at + kScalarBytes ||
        !it->second.view.type->dims.empty() ||
        it->second.view.sharding->Owed() - PipelineOf(mesh_) !=
            view.sharding->Owed() - PipelineOf(mesh_)) {
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
                    it->second.zero ? "zeroed memory" : ShownView(it->second.view, mesh_), " at [",
                    it->first, ", ", it->second.end, ")");
    if (text.size() > 300) break;
  }
  return text.empty() ? "; nothing is there" : text;
}

absl::StatusOr<const Tiles*> TileStore::Read(Range range, const TileView& view) {
  const auto it = stored_.find(range.begin);
  if (it != stored_.end() && !it->second.zero && it->second.end == range.end) {
    if (SameView(it->second.view, view, PipelineOf(mesh_))) return &it->second.tiles;
    return absl::InvalidArgumentError(absl::StrCat("reads ", ShownView(view, mesh_), " where ",
                                                   ShownView(it->second.view, mesh_),
                                                   " was written [meaning_v3]"));
  }
  if (IsZero(range)) return MakeScratch(view);
  if (Compose(range, view)) return &scratch_.back();
  return absl::InvalidArgumentError(absl::StrCat(
      "reads ", ShownView(view, mesh_), " at [", range.begin, ", ", range.end,
      "), which was not written or has been overwritten", WhatIsThere(range), " [meaning_v2]"));
}

}  // namespace mgc
