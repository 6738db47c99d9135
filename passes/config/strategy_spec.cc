#include "passes/config/strategy_spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "passes/config/strategy_text.h"

namespace mgc {

absl::string_view WordOf(StrategyCondition condition) {
  constexpr absl::string_view kWords[] = {"", "sequence_parallel", "zero", "zero2", "zero3"};
  return kWords[static_cast<size_t>(condition)];
}

absl::string_view WordOf(GatherTaken taken) {
  constexpr absl::string_view kWords[] = {"silent", "note", "error"};
  return kWords[static_cast<size_t>(taken)];
}

absl::string_view WordOf(StoredKind kind) {
  constexpr absl::string_view kWords[] = {"states", "gradients", "parameters"};
  return kWords[static_cast<size_t>(kind)];
}

absl::StatusOr<StrategySpec> FindStrategyPreset(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const StrategyPreset& preset : StrategyPresets()) {
    if (name == preset.name) return ParseStrategy(preset.text, preset.name);
    names.emplace_back(preset.name);
  }
  return absl::NotFoundError(absl::StrCat("no strategy is named ", EscapeBytes(name),
                                          DidYouMean(name, names), "; there are ",
                                          absl::StrJoin(names, ", "), ", and files"));
}

const StrategySpec& DefaultStrategy() {
  static const auto* spec = [] {
    absl::StatusOr<StrategySpec> found = FindStrategyPreset(kDefaultStrategy);
    MGC_CHECK(found.ok()) << found.status();
    return new StrategySpec(*std::move(found));
  }();
  return *spec;
}

bool MatchesGlob(absl::string_view pattern, absl::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = absl::string_view::npos;  // the latest `*`, which takes text up to `taken`
  size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace mgc
