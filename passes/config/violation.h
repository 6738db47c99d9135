// What is wrong with a configuration, in a form that can be collected: a check never stops at the
// first rule that is broken.
//
// Rule labels are those of Megatron's own conditions where there is one (G1, M2, P13, ...); ours
// are listed in passes/config/check_config.h.

#ifndef MGC_PASSES_CONFIG_VIOLATION_H_
#define MGC_PASSES_CONFIG_VIOLATION_H_

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace mgc {

struct Violation {
  std::string rule;     // `P7`
  std::string message;  // the condition with its numbers, without a full stop
  std::string hint;     // the nearest legal values, or empty
};

// `error: <message> [<rule>]; nearest legal: <hint>`, without a newline. Bytes that do not print
// are escaped.
std::string ToString(const Violation& violation);

// One line per violation, each ended by a newline.
std::string ToString(absl::Span<const Violation> violations);

// Appends all of `more` to `violations`.
void Append(std::vector<Violation> more, std::vector<Violation>* violations);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_VIOLATION_H_
