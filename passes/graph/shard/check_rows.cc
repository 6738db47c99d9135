#include "passes/graph/shard/check_rows.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/assemble.h"
#include "passes/config/nearest_legal.h"

namespace mgc {
namespace {

// How large an axis a hint proposes at most; keeps the search short for absurd sizes.
constexpr int64_t kMaxHint = 1 << 14;

// Values in which one row cuts a dim of one size over the same axes.
struct Cut {
  Dim dim;
  AxisList axes;
  std::string said;   // the row
  bool home = false;  // of forward values that the row brings home
  ValueId first = kNone;
  int64_t values = 0;
};

class RowCheck {
 public:
  RowCheck(const Graph& graph, const Strategy& strategy, const Mesh& mesh)
      : graph_(graph), strategy_(strategy), mesh_(mesh) {}

  Diagnostics Run() {
    for (const GraphInput& input : graph_.inputs()) {
      const bool own = input.kind == InputKind::kParam || input.kind == InputKind::kData;
      if (own) AddCuts(input.value, /*home=*/false);
    }
    for (const Node& node : graph_.nodes()) {
      if (node.phase != Phase::kForward) continue;
      for (ValueId id : node.outputs) {
        if (strategy_.HasHome(graph_.type(id), NamesOf(graph_, id))) AddCuts(id, /*home=*/true);
      }
    }
    Diagnostics violations;
    for (const Cut& cut : cuts_) {
      if (!Refused(cut)) continue;
      violations.Add({"shard_c6", TextOf(cut), HintOf(cut),
                      absl::StrCat("%", EscapeBytes(graph_.value(cut.first).name))});
    }
    return violations;
  }

 private:
  void AddCuts(ValueId id, bool home) {
    const TensorType& type = graph_.type(id);
    const std::vector<SeededDim> seeds = strategy_.SeedDims(type, NamesOf(graph_, id));
    for (size_t d = 0; d < seeds.size(); ++d) {
      if (seeds[d].axes.empty()) continue;
      const auto same = [&](const Cut& cut) {
        return cut.dim == type.dims[d] && cut.axes == seeds[d].axes && cut.home == home &&
               cut.said == *seeds[d].said;
      };
      auto cut = std::find_if(cuts_.begin(), cuts_.end(), same);
      if (cut == cuts_.end()) {
        cuts_.push_back({type.dims[d], seeds[d].axes, *seeds[d].said, home, id, 0});
        cut = cuts_.end() - 1;
      }
      ++cut->values;
    }
  }

  bool Allowed(const Cut& cut) const { return strategy_.Allows(cut.dim, cut.axes, mesh_); }

  bool Refused(const Cut& cut) const {
    if (Allowed(cut)) return false;
    return !cut.home || std::none_of(cuts_.begin(), cuts_.end(), [&](const Cut& other) {
      return other.home && other.said == cut.said && Allowed(other);
    });
  }

  std::string TextOf(const Cut& cut) const {
    const std::string more =
        cut.values == 1
            ? ""
            : absl::StrCat(" and of ", cut.values - 1, " other value", cut.values == 2 ? "" : "s");
    return absl::StrCat(mesh_.GroupName(cut.axes.AsSet()), " ", mesh_.Size(cut.axes),
                        " does not divide dim ", EscapeBytes(cut.dim.name), " of ",
                        EscapeBytes(graph_.type(cut.first).ToString()), more, ", which `",
                        EscapeBytes(cut.said), "` cuts");
  }

  // Sizes that the axes divide; how many ranks an axis that cuts alone may have, for all that it
  // cuts; unequal pieces.
  std::string HintOf(const Cut& cut) const {
    const std::string dim = EscapeBytes(cut.dim.name);
    const std::string axis = mesh_.GroupName(cut.axes.AsSet());
    std::string hint = absl::StrCat(dim, "=", NearestMultiples(cut.dim.size, mesh_.Size(cut.axes)));
    const bool alone = axis.find_first_of("-.") == std::string::npos;  // no product, no part
    const int64_t most = alone ? std::min(cut.dim.size, kMaxHint) : 0;
    const std::string ranks = NearestLegal(mesh_.Size(cut.axes), most, [&](int64_t size) {
      return std::all_of(cuts_.begin(), cuts_.end(), [&](const Cut& other) {
        return other.axes != cut.axes || strategy_.Allows(other.dim, size);
      });
    });
    if (!ranks.empty()) absl::StrAppend(&hint, ", or ", axis, " ", ranks);
    return absl::StrCat(hint, ", or `uneven ", dim, "` in the strategy");
  }

  const Graph& graph_;
  const Strategy& strategy_;
  const Mesh& mesh_;
  std::vector<Cut> cuts_;
};

}  // namespace

Diagnostics CheckRows(const Graph& graph, const Strategy& strategy, const Mesh& mesh) {
  return RowCheck(graph, strategy, mesh).Run();
}

Diagnostics CheckTiles(const Graph& sharded) {
  Diagnostics violations;
  for (const Value& value : sharded.values()) {
    int64_t elements = 1;
    for (size_t d = 0; d < value.type.dims.size(); ++d) {
      const int64_t room = LocalSize(value.type.dims[d], value.sharding->dims[d], sharded.mesh());
      elements = SaturatingMultiply(elements, room);
    }
    if (elements <= kMaxTileElements) continue;
    violations.Add("T3", absl::StrCat("%", EscapeBytes(value.name)),
                   absl::StrCat("a rank holds ", elements, " elements of ",
                                EscapeBytes(value.type.ToString()), ", more than 2^42"));
  }
  return violations;
}

}  // namespace mgc
