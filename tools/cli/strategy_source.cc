#include "tools/cli/strategy_source.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "passes/config/strategy_text.h"
#include "passes/search/class_layout.h"
#include "tools/cli/output.h"

namespace mgc {
namespace {

bool IsPreset(const std::string& name) {
  return !absl::IsNotFound(FindStrategyPreset(name).status());
}

}  // namespace

absl::StatusOr<StrategySpec> LoadStrategy(const absl::optional<std::string>& name) {
  if (!name.has_value()) return DefaultStrategy();
  if (IsPreset(*name)) return FindStrategyPreset(*name);
  const absl::StatusOr<std::string> text = ReadInput(*name);
  if (absl::IsNotFound(text.status())) return FindStrategyPreset(*name).status();
  if (!text.ok()) return text.status();
  return ParseStrategy(*text, *name == "-" ? "stdin" : *name);
}

absl::StatusOr<std::string> LayOutIfUnnamed(const Graph& model, const ModelDims& dims,
                                            absl::optional<std::string>* name,
                                            CompileOptions* options) {
  const bool asked = name->value_or("") == kClassStrategy;
  if (!asked && (name->has_value() || options->parallel.tp == 1)) return "";
  if (!asked) {
    MGC_ASSIGN_OR_RETURN(const bool cuts,
                         CutsParameters(model, options->parallel, options->strategy));
    if (cuts) return "";
  }
  MGC_ASSIGN_OR_RETURN(ClassLayout layout, LayOutByClasses(model, dims, *options));
  options->strategy = std::move(layout.strategy);
  *name = kClassStrategy;
  return absl::StrCat(
      "laid out by dim classes, with the rows of least predicted time; to change "
      "them, edit them and pass them with --strategy FILE:\n",
      absl::StripTrailingAsciiWhitespace(PrintStrategy(options->strategy)));
}

absl::optional<std::string> StrategyPath(const absl::optional<std::string>& name) {
  const bool file = name.has_value() && *name != kClassStrategy && !IsPreset(*name);
  return file ? name : absl::nullopt;
}

PlanOptions OptionsOf(const absl::optional<std::string>& name, const StrategySpec& spec) {
  PlanOptions options;
  if (name.value_or(kDefaultStrategy) == kDefaultStrategy) return options;
  options.emplace_back("--strategy", *name);
  const std::string text = PrintStrategy(spec);
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (size_t i = 1; i + 1 < lines.size(); ++i) {  // between the braces
    options.emplace_back(absl::StrCat("strategy.", i),
                         std::string(absl::StripAsciiWhitespace(lines[i])));
  }
  return options;
}

}  // namespace mgc
