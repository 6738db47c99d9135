// The text form of machines (docs/text.md).
//
//   machine @mine {
//     memory 85899345920 bandwidth 2.039e+12 efficiency 0.85
//     overhead 4e-06
//     compute bf16 3.12e+14 efficiency 0.7 at 2.1e+09 efficiency 0.35
//     tier nvlink ranks 8 bandwidth 3e+11 efficiency 0.78 latency 1.2e-05 hop 3.4e-06
//     tier infiniband ranks any bandwidth 2.5e+10 efficiency 0.96 latency 1.8e-05 hop 1e-05
//   }
//
// Bytes, bytes per second, flops per second, seconds. An efficiency that is left out is 1, a hop 0.

#ifndef MGC_GRAPH_TEXT_MACHINE_TEXT_H_
#define MGC_GRAPH_TEXT_MACHINE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/text/token_reader.h"
#include "graph/types/machine.h"

namespace mgc {

// Ends with a newline.
std::string PrintMachine(const Machine& machine);

// The machine in `text`, which holds nothing else; it has passed CheckMachine. Errors as those of
// ParseGraph.
absl::StatusOr<Machine> ParseMachine(absl::string_view text, absl::string_view filename);

// One machine at the cursor; reports and returns false.
bool ReadMachine(TokenReader* reader, Machine* out);

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_MACHINE_TEXT_H_
