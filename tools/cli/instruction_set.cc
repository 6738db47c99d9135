#include "tools/cli/instruction_set.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mgc {
namespace {

constexpr char kFlag[] = "--instruction-set";

// The words of all levels up to one.
std::vector<absl::string_view> WordsUpTo(SimdLevel most) {
  std::vector<absl::string_view> words;
  for (SimdLevel level : AllSimdLevels()) {
    if (level <= most) words.push_back(WordOf(level));
  }
  return words;
}

}  // namespace

void AddInstructionSetFlag(Flags* flags, absl::optional<std::string>* out) {
  flags->Choice(kFlag, WordsUpTo(AllSimdLevels().back()),
                "kernels of that one at most (default: the best that all processes have)", out);
}

Diagnostics CheckInstructionSet(const absl::optional<std::string>& word, SimdLevel best) {
  Diagnostics violations;
  if (InstructionSetOf(word, best) <= best) return violations;
  violations.Add(
      {"I1",
       absl::StrCat(kFlag, " is ", *word, ", and this processor has ", NameOf(best), " at best"),
       absl::StrJoin(WordsUpTo(best), ", ")});
  return violations;
}

SimdLevel InstructionSetOf(const absl::optional<std::string>& word, SimdLevel best) {
  const std::vector<SimdLevel> levels = AllSimdLevels();
  const auto it = std::find_if(levels.begin(), levels.end(),
                               [&word](SimdLevel level) { return WordOf(level) == word; });
  return it == levels.end() ? best : *it;
}

std::vector<std::string> WithoutInstructionSet(const std::vector<std::string>& arguments) {
  std::vector<std::string> others;
  for (size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at] == kFlag) {
      ++at;  // its value
    } else if (!absl::StartsWith(arguments[at], absl::StrCat(kFlag, "="))) {
      others.push_back(arguments[at]);
    }
  }
  return others;
}

}  // namespace mgc
