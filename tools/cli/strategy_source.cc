#include "tools/cli/strategy_source.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "passes/config/strategy_text.h"
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

absl::optional<std::string> StrategyPath(const absl::optional<std::string>& name) {
  return name.has_value() && !IsPreset(*name) ? name : absl::nullopt;
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
