#include "frontends/weights/adapter_targets.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "frontends/families.h"
#include "frontends/weights/weight_table.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

std::string LastPart(absl::string_view module) {
  return std::string(module.substr(module.rfind('.') + 1));
}

AdaptedLayers LayersOf(const WeightRow& row) {
  AdaptedLayers layers;
  for (const char* parameter : row.parameters) {
    if (parameter != nullptr) layers.emplace_back(parameter);
  }
  return layers;
}

std::vector<WeightRow> LinearRows(const ModelConfig& config) {
  std::vector<WeightRow> rows;
  for (const WeightRow& row : WeightsOf(config.family).rows) {
    if (IsLinear(row)) rows.push_back(row);
  }
  return rows;
}

void AddOnce(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

std::vector<std::string> LastParts(const std::vector<WeightRow>& rows) {
  std::vector<std::string> names;
  for (const WeightRow& row : rows) AddOnce(LastPart(row.name), &names);
  return names;
}

}  // namespace

AdapterTargets FindAdapterTargets(const ModelConfig& config,
                                  const std::vector<std::string>& wanted) {
  const std::vector<WeightRow> rows = LinearRows(config);
  const std::vector<std::string> known = LastParts(rows);
  AdapterTargets targets;
  for (const std::string& target : wanted) {
    if (target == kAllLinear) {
      for (const std::string& name : known) AddOnce(name, &targets.modules);
      continue;
    }
    const bool found = std::any_of(rows.begin(), rows.end(), [&](const WeightRow& row) {
      return EndsInName(row.name, target);
    });
    if (found) {
      AddOnce(target, &targets.modules);
      continue;
    }
    const std::vector<absl::string_view> names(known.begin(), known.end());
    targets.problems.Add({"",
                          absl::StrCat(TraitsOf(config.family).model_type, " has no linear layer `",
                                       EscapeBytes(target), "`", DidYouMean(target, names)),
                          absl::StrCat(absl::StrJoin(known, ", "), ", ", kAllLinear)});
  }
  for (const WeightRow& row : rows) {
    const bool is_target =
        std::any_of(targets.modules.begin(), targets.modules.end(),
                    [&](const std::string& name) { return EndsInName(row.name, name); });
    if (!is_target) continue;
    targets.layers.push_back(LayersOf(row));
    targets.fan_in_fan_out |= row.layout == WeightLayout::kStored;
  }
  return targets;
}

std::vector<std::string> DefaultAdapterTargets(const ModelConfig& config) {
  std::vector<WeightRow> rows;
  for (const WeightRow& row : LinearRows(config)) {
    const AdaptedLayers layers = LayersOf(row);
    const bool chosen = std::any_of(layers.begin(), layers.end(), [](const std::string& layer) {
      return layer == "attention.q" || layer == "attention.v";
    });
    if (chosen) rows.push_back(row);
  }
  return LastParts(rows);
}

}  // namespace mgc
