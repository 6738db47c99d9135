#include "frontends/adapter.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "frontends/layers.h"

namespace mgc {
namespace {

// Both decay, as weights do.
LinearOptions Trained(ParamInit init) {
  LinearOptions options;
  init.adapter = true;
  init.decay = true;
  options.init = std::move(init);
  return options;
}

}  // namespace

bool EndsInName(absl::string_view path, absl::string_view name) {
  return path == name || absl::EndsWith(path, absl::StrCat(".", name));
}

absl::optional<AdapterOptions::Place> AdapterOptions::PlaceOf(const std::string& path) const {
  for (const AdaptedLayers& sharing : layers) {
    for (const std::string& layer : sharing) {
      if (!EndsInName(path, layer)) continue;
      return Place{layer, absl::StrCat(absl::StripSuffix(path, layer), sharing[0])};
    }
  }
  return absl::nullopt;
}

Tensor Adapter::Term(ModelBuilder& b, Tensor x, const std::vector<std::string>& in,
                     const std::vector<std::string>& out, CallSite site) {
  const absl::optional<AdapterOptions::Place> place = options_.PlaceOf(b.Path(""));
  if (!place.has_value()) return Tensor();
  met_.insert(place->layer);
  const auto [found, is_new] = narrow_.try_emplace(place->owner, Narrow{x, Tensor()});
  if (is_new) {
    double inputs = 1;
    for (const std::string& dim : in) inputs *= static_cast<double>(b.Size(dim, site));
    const Tensor narrow =
        Linear(b, kAdapterA, x, absl::StrCat(absl::StrJoin(in, " "), " -> ", kAdapterDim),
               Trained(NormalInit(1 / std::sqrt(3 * inputs))), site);
    found->second.product = b.Op("scale", {narrow}, {{"value", options_.Scale()}}, site);
  } else if (!(found->second.x == x)) {
    return b.Fail(absl::StrCat("shares ", kAdapterA, " with ", place->owner, ", of another input"),
                  site);
  }
  return Linear(b, kAdapterB, found->second.product,
                absl::StrCat(kAdapterDim, " -> ", absl::StrJoin(out, " ")), Trained(ZerosInit()),
                site);
}

std::vector<std::string> Adapter::Unmet() const {
  std::vector<std::string> unmet;
  for (const AdaptedLayers& layers : options_.layers) {
    for (const std::string& layer : layers) {
      if (met_.count(layer) == 0) unmet.push_back(layer);
    }
  }
  return unmet;
}

}  // namespace mgc
