// What processes that a launcher has started one by one must have in common before they run.

#ifndef MGC_TOOLS_LAUNCH_AGREEMENT_H_
#define MGC_TOOLS_LAUNCH_AGREEMENT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// Names and values, in the same order everywhere: `plan` and its hash, `options` and their text.
using Terms = std::vector<std::pair<std::string, std::string>>;

std::string PackTerms(const Terms& terms);

// OK when all processes' terms are the first one's; else FailedPrecondition, which names what
// differs, both processes and both values.
absl::Status CheckTerms(const std::vector<std::string>& packed);

// A hash of any bytes, for terms.
std::string HashText(absl::string_view bytes);
// Of what a file holds, read piece by piece; of one above 64 MiB, of its size and of 1,024 places
// all over it, so that a run need not read all of its data before it begins. Errors of ReadPieces
// (graph/base/file.h).
absl::StatusOr<std::string> HashFile(const std::string& path);

// A hash of results of the C library's log, pow and cos, which runs use: it chooses instructions by
// itself, and its versions may round differently.
std::string HashMathematics();

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_AGREEMENT_H_
