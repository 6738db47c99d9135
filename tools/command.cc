#include "tools/command.h"

#include <iostream>

#include "tools/output.h"
#include "tools/parallel_flags.h"

namespace mgc {

absl::optional<int> ParseOrEnd(Flags* flags, const Words& arguments, ParsedFlags* parsed) {
  if (arguments.empty()) {
    std::cerr << flags->ShortHelp();
    return kExitUsage;
  }
  *parsed = flags->Parse(arguments);
  if (parsed->text.has_value()) return Finish(*parsed->text);
  return absl::nullopt;
}

absl::optional<int> ParseStrictly(Flags* flags, const Words& arguments, absl::string_view command) {
  ParsedFlags parsed;
  if (absl::optional<int> code = ParseOrEnd(flags, arguments, &parsed)) return code;
  if (!parsed.errors.empty()) return Refuse(parsed.errors, {}, command);
  return absl::nullopt;
}

}  // namespace mgc
