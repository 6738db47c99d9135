#include "tests/same_loss/shared_layers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"

namespace mgc {
namespace {

constexpr char kRemoved[] = "  removed";
constexpr int kTurns[] = {0, 1, 1, 0, 0, 1};

// Of a parameter `layers.<layer>.<rest>`: the layer whose it is.
using Sharing = std::function<int(int layer, const std::string& rest)>;

std::map<std::string, Sharing> Sharings() {
  return {
      {"albert", [](int /*layer*/, const std::string& /*rest*/) { return 0; }},
      {"universal",
       [](int layer, const std::string& rest) {
         return absl::StartsWith(rest, "norm1") ? layer : 0;
       }},
      {"turns",
       [](int layer, const std::string& rest) {
         return absl::StartsWith(rest, "mlp") ? 0 : kTurns[layer % 6];
       }},
      {"frozen", [](int /*layer*/, const std::string& /*rest*/) { return 0; }},
  };
}

}  // namespace

absl::StatusOr<Graph> ShareLayers(const Graph& model, const std::string& sharing) {
  const std::map<std::string, Sharing> sharings = Sharings();
  const auto found = sharings.find(sharing);
  if (found == sharings.end()) return absl::NotFoundError(absl::StrCat("no sharing ", sharing));
  std::vector<std::pair<std::string, std::string>> replaced;
  for (const GraphInput& input : model.inputs()) {
    const std::string& name = model.value(input.value).name;
    const std::vector<std::string> parts = absl::StrSplit(name, absl::MaxSplits('.', 2));
    int layer = 0;
    if (input.kind != InputKind::kParam || parts[0] != "layers" || parts.size() < 3 ||
        !absl::SimpleAtoi(parts[1], &layer)) {
      continue;
    }
    const int owner = found->second(layer, parts[2]);
    if (owner == layer) continue;
    replaced.emplace_back(absl::StrCat("  param %", name, ":"), kRemoved);
    for (const char* end : {",", ")"}) {
      replaced.emplace_back(absl::StrCat("%", name, end),
                            absl::StrCat("%layers.", owner, ".", parts[2], end));
    }
  }
  std::vector<std::string> lines =
      absl::StrSplit(absl::StrReplaceAll(PrintGraph(model), replaced), '\n');
  const auto is_removed = [](const std::string& line) { return absl::StartsWith(line, kRemoved); };
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_removed), lines.end());
  for (std::string& line : lines) {
    if (sharing != "frozen" || !absl::StartsWith(line, "  param %layers.0.attention.")) continue;
    line = absl::StrReplaceAll(line, {{"}", ", train=0}"}});
  }
  return ParseGraph(absl::StrJoin(lines, "\n"), sharing);
}

}  // namespace mgc
