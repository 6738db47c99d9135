#include "tools/views/axes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/status.h"
#include "tools/views/sharded_again.h"

namespace mgc {
namespace {

// Uses of one axis to one effect, dim and reason.
struct UseFold {
  AxisUse first;
  std::vector<std::pair<ValueKind, int64_t>> counts;  // the first's too
};

// `all`: each use by itself. Else one without a reason of its own joins the first to the same end.
std::vector<UseFold> FoldUses(const std::vector<AxisUse>& uses, bool all) {
  std::vector<UseFold> folds;
  for (const AxisUse& use : uses) {
    const auto same = std::find_if(folds.begin(), folds.end(), [&use](const UseFold& fold) {
      return fold.first.axis == use.axis && fold.first.effect == use.effect &&
             fold.first.dim == use.dim && (fold.first.by == use.by || use.by.empty());
    });
    if (all || same == folds.end()) {
      folds.push_back({use, {{use.kind, use.count}}});
      continue;
    }
    const auto kind = std::find_if(same->counts.begin(), same->counts.end(),
                                   [&use](const auto& count) { return count.first == use.kind; });
    if (kind != same->counts.end()) {
      kind->second += use.count;
    } else {
      same->counts.push_back({use.kind, use.count});
    }
  }
  return folds;
}

std::string ValuesText(const UseFold& fold) {
  return absl::StrJoin(fold.counts, ", ", [](std::string* out, const auto& count) {
    std::string kind(WordOf(count.first));
    if (count.second == 1) kind.pop_back();  // all are plurals
    absl::StrAppend(out, count.second, " ", kind);
  });
}

std::string NamesText(const AxisUse& use) {
  const std::string names = absl::StrJoin(use.names, ", ");
  return use.more == 0 ? names : absl::StrCat(names, " and ", use.more, " more");
}

std::string UseText(const UseFold& fold) {
  const AxisUse& use = fold.first;
  const std::string values = ValuesText(fold);
  const std::string by = use.by.empty() ? "" : absl::StrCat(", by ", use.by);
  switch (use.effect) {
    case AxisEffect::kCuts:
      return absl::StrCat("cuts ", use.dim, " of ", values, by);
    case AxisEffect::kStores:
      return absl::StrCat("stores ", values, " in pieces", by);
    case AxisEffect::kSums:
      return absl::StrCat("leaves a sum owed by ", values, by);
    case AxisEffect::kKeeps:
      return absl::StrCat("keeps ", use.dim.empty() ? "" : absl::StrCat(use.dim, " of "), values,
                          " whole, asked by ", use.by);
    case AxisEffect::kLeaves:
      return absl::StrCat("leaves ", values, " whole, ",
                          use.dim.empty() ? "" : absl::StrCat(use.dim, " by "), use.by);
  }
  return "";
}

}  // namespace

AxisUses AxisUsesOf(const Plan& plan) {
  if (plan.options.empty()) return std::vector<AxisUse>();
  MGC_ASSIGN_OR_RETURN(const ShardedAgain again, ShardAgain(plan));
  return AxisUsesOf(again.training, again.sharded, again.strategy, again.record);
}

std::string AxesText(const Mesh& mesh, size_t stages, const AxisUses& uses, bool all) {
  if (!uses.ok()) {
    return absl::StrCat("axes: not told, for ", uses.status().message(), "\n");
  }
  if (uses->empty()) return "";
  const std::vector<UseFold> folds = FoldUses(*uses, all);
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    absl::StrAppend(&text, "axis ", axis.name, ", ", axis.size, " ranks\n");
    if (axis.name == "pp") absl::StrAppend(&text, "  cuts the step into ", stages, " stages\n");
    for (const UseFold& fold : folds) {
      if (fold.first.axis != axis.name) continue;
      absl::StrAppend(&text, "  ", UseText(fold), ": ", NamesText(fold.first), "\n");
    }
  }
  return text;
}

void WriteAxes(const Mesh& mesh, const AxisUses& uses, JsonWriter* json) {
  json->NewLine().Key("axes").BeginArray();
  for (const MeshAxis& axis : mesh.axes()) {
    json->NewLine().BeginObject().String("axis", axis.name).Integer("ranks", axis.size);
    json->Key("uses").BeginArray();
    for (const AxisUse& use : uses.value_or(std::vector<AxisUse>())) {
      if (use.axis != axis.name) continue;
      json->NewLine().BeginObject().String("effect", WordOf(use.effect));
      json->String("values", WordOf(use.kind)).String("dim", use.dim).String("by", use.by);
      json->Integer("count", use.count).Key("names").BeginArray();
      for (const std::string& name : use.names) json->String(name);
      json->EndArray().Integer("more", use.more).EndObject();
    }
    json->EndArray().EndObject();
  }
  json->EndArray();
}

}  // namespace mgc
