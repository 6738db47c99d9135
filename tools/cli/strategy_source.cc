#include "tools/cli/strategy_source.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"
#include "graph/base/units.h"
#include "passes/config/strategy_text.h"
#include "tools/cli/output.h"

namespace mgc {
namespace {

bool IsPreset(const std::string& name) {
  return !absl::IsNotFound(FindStrategyPreset(name).status());
}

std::string RowsText(const StrategySpec& strategy) {
  return absl::StrCat("; to change them, edit them and pass them with --strategy FILE:\n",
                      absl::StripTrailingAsciiWhitespace(PrintStrategy(strategy)));
}

}  // namespace

std::string NoteOn(const ClassLayout& layout) {
  std::string note = "laid out by dim classes, with the rows of least predicted time";
  if (layout.cut_short) {
    absl::StrAppend(&note, " among ", layout.plans, " plans, before all were tried");
  }
  if (const int64_t above = layout.cost.parameter_bytes - layout.budget; above > 0) {
    absl::StrAppend(&note, "; each rank holds ", BytesText(above),
                    " of parameters more than 1.1 times its share of those that tp can cut");
  }
  return absl::StrCat(note, RowsText(layout.strategy));
}

std::string NameFound(const StrategySpec& strategy, absl::optional<std::string>* name) {
  *name = kClassStrategy;
  return absl::StrCat("laid out by dim classes, with the rows that the search has found",
                      RowsText(strategy));
}

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
  const auto cuts = [&](const StrategySpec& strategy) {
    return CutsParameters(model, options->parallel, strategy);
  };
  if (!asked) {
    MGC_ASSIGN_OR_RETURN(const bool default_cuts, cuts(options->strategy));
    if (default_cuts) return "";
  }
  MGC_ASSIGN_OR_RETURN(ClassLayout layout, LayOutByClasses(model, dims, *options));
  MGC_ASSIGN_OR_RETURN(const bool layout_cuts, cuts(layout.strategy));
  if (!asked && !layout_cuts) return "";  // as replication allows: no reason to leave the default
  options->strategy = layout.strategy;
  *name = kClassStrategy;
  return NoteOn(layout);
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
