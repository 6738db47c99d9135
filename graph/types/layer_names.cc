#include "graph/types/layer_names.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace mgc {
namespace {

constexpr absl::string_view kNumber = "*";
constexpr absl::string_view kStar = "**";

}  // namespace

std::string LayerScope(int layer) { return absl::StrCat("layers.", layer); }

std::string LayerPrefix(int layer) { return absl::StrCat(LayerScope(layer), "."); }

std::string FoldName(absl::string_view name, int layer, int num_layers) {
  std::string escaped = absl::StrReplaceAll(name, {{kNumber, kStar}});
  if (layer < 0 || layer >= num_layers) return escaped;
  return absl::StrReplaceAll(escaped, {{LayerPrefix(layer), "layers.*."}});
}

std::string NameForLayer(absl::string_view pattern, int layer) {
  // The longest match wins.
  return absl::StrReplaceAll(pattern, {{kStar, kNumber}, {kNumber, absl::StrCat(layer)}});
}

}  // namespace mgc
