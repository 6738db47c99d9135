#include "graph/verify/shrink/covering_meshes.h"

#include <algorithm>
#include <set>

namespace mgc {
namespace {

using Pairs = std::set<std::pair<size_t, size_t>>;  // the smaller number first

Pairs PairsAmong(const std::vector<size_t>& group, const Pairs& pairs) {
  Pairs among;
  for (size_t a : group) {
    for (size_t b : group) {
      if (pairs.count({a, b}) > 0) among.insert({a, b});
    }
  }
  return among;
}

// A group of axes that meet: begun with an open pair, or else an open axis, it takes in whoever
// closes most pairs, then who is open.
std::vector<size_t> NextGroup(size_t num_axes, const Pairs& pairs, const std::set<size_t>& open) {
  std::vector<size_t> group;
  if (!pairs.empty()) group = {pairs.begin()->first, pairs.begin()->second};
  while (group.size() < std::min(kMostAxesAtOnce, num_axes)) {
    size_t best = num_axes;
    std::pair<size_t, size_t> closes = {0, 0};
    for (size_t axis = 0; axis < num_axes; ++axis) {
      if (std::find(group.begin(), group.end(), axis) != group.end()) continue;
      std::vector<size_t> with = group;
      with.push_back(axis);
      const std::pair<size_t, size_t> now = {PairsAmong(with, pairs).size(), open.count(axis)};
      if (best < num_axes && now <= closes) continue;
      best = axis;
      closes = now;
    }
    const bool gains = closes.second > 0 || closes.first > PairsAmong(group, pairs).size();
    if (!gains && num_axes > kMostAxesAtOnce) break;
    group.push_back(best);
  }
  return group;
}

// Which of so many axes, looked at together, have their most ranks in each of the fewest meshes
// that tell them apart.
std::vector<std::vector<bool>> CodesOf(size_t axes) {
  switch (axes) {
    case 0:
      return {{}};
    case 1:
      return {{true}};
    case 2:
      return {{true, false}, {false, true}};
    case 3:
      return {{true, false, true}, {false, true, true}};
    default:
      return {{true, false, false, true}, {false, true, false, true}, {false, false, true, false}};
  }
}

}  // namespace

std::vector<std::vector<int64_t>> CoveringMeshes(absl::Span<const SmallAxis> axes,
                                                 absl::Span<const std::pair<int, int>> pairs) {
  Pairs open_pairs;
  for (const auto& [a, b] : pairs) {
    open_pairs.insert({static_cast<size_t>(std::min(a, b)), static_cast<size_t>(std::max(a, b))});
  }
  std::set<size_t> open;
  for (size_t axis = 0; axis < axes.size(); ++axis) open.insert(axis);
  std::vector<std::vector<int64_t>> meshes;
  while (!open.empty() || !open_pairs.empty()) {
    const std::vector<size_t> group = NextGroup(axes.size(), open_pairs, open);
    std::vector<size_t> fresh;
    for (size_t axis : group) {
      if (open.erase(axis) > 0) fresh.push_back(axis);
    }
    for (const auto& pair : PairsAmong(group, open_pairs)) open_pairs.erase(pair);
    for (const std::vector<bool>& code : CodesOf(fresh.size())) {
      std::vector<int64_t>& mesh = meshes.emplace_back(axes.size(), 1);
      for (size_t axis : group) mesh[axis] = axes[axis].least;
      for (size_t i = 0; i < fresh.size(); ++i) {
        if (code[i]) mesh[fresh[i]] = axes[fresh[i]].most;
      }
    }
  }
  if (axes.size() == 1 && axes[0].most != axes[0].least) meshes.push_back({axes[0].least});
  if (meshes.empty()) meshes.emplace_back();
  return meshes;
}

}  // namespace mgc
