// What processes that a launcher has started one by one must have in common before they run.

#ifndef MGC_TOOLS_LAUNCH_AGREEMENT_H_
#define MGC_TOOLS_LAUNCH_AGREEMENT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace mgc {

// Names and values, in the same order everywhere: `plan` and its hash, `options` and their text.
using Terms = std::vector<std::pair<std::string, std::string>>;

std::string PackTerms(const Terms& terms);

// OK when all processes' terms are the first one's; else FailedPrecondition, which names what
// differs, both processes and both values.
absl::Status CheckTerms(const std::vector<std::string>& packed);

// A hash of any bytes, for terms.
std::string HashText(const std::string& bytes);

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_AGREEMENT_H_
