// What the programs of examples/ that write a model have in common.

#ifndef MGC_EXAMPLES_WRITE_MODEL_H_
#define MGC_EXAMPLES_WRITE_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"

namespace mgc {

// `--NAME N` sets a size of the model, which stands at `value` and is what the model has without
// the flag.
struct SizeFlag {
  absl::string_view name;
  int64_t* value;
};

// The whole of such a program: reads the flags, prints the graph as text to stdout and returns what
// main returns: 0; 2 for flags it does not have; 4 for sizes the model cannot have; 1 where a file
// cannot be written. `--samples FILE` writes made-up samples of all data inputs, too.
int WriteModel(int argc, char** argv, const std::vector<SizeFlag>& flags,
               const std::function<absl::StatusOr<Graph>()>& build);

}  // namespace mgc

#endif  // MGC_EXAMPLES_WRITE_MODEL_H_
