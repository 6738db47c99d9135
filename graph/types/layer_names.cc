#include "graph/types/layer_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace mgc {
namespace {

constexpr absl::string_view kNumber = "*";
constexpr absl::string_view kStar = "**";

std::string FoldWord(absl::string_view word, int layer) {
  const std::string prefix = LayerPrefix(layer);
  if (absl::StrContains(word, prefix)) {
    return absl::StrReplaceAll(word, {{prefix, "layers.*."}});
  }
  std::vector<absl::string_view> parts = absl::StrSplit(word, '.');
  const auto number = std::find(parts.begin(), parts.end(), absl::StrCat(layer));
  if (number != parts.end() && parts.size() > 1) *number = kNumber;
  return absl::StrJoin(parts, ".");
}

}  // namespace

std::string LayerScope(int layer) { return absl::StrCat("layers.", layer); }

std::string LayerPrefix(int layer) { return absl::StrCat(LayerScope(layer), "."); }

std::string FoldName(absl::string_view name, int layer, int num_layers) {
  std::string escaped = absl::StrReplaceAll(name, {{kNumber, kStar}});
  if (layer < 0 || layer >= num_layers) return escaped;
  std::vector<std::string> words = absl::StrSplit(escaped, ' ');
  for (std::string& word : words) word = FoldWord(word, layer);
  return absl::StrJoin(words, " ");
}

std::string NameForLayer(absl::string_view pattern, int layer) {
  // The longest match wins.
  return absl::StrReplaceAll(pattern, {{kStar, kNumber}, {kNumber, absl::StrCat(layer)}});
}

}  // namespace mgc
