// The graph passes by name, for test files.

#ifndef MGC_TESTS_FILETEST_PASS_RUNNER_H_
#define MGC_TESTS_FILETEST_PASS_RUNNER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace mgc {

// Runs `simplify`, `differentiate`, `shard`, `partition`, `recompute` or `fuse`. Options, separated
// by blanks: of shard the layout, `tp=2 dp=2 cp=1 pp=2 sp kv_heads=4 zero=1`; of recompute `full`
// or `selective`. InvalidArgument for an unknown pass or option.
absl::StatusOr<Graph> RunPassByName(absl::string_view pass, absl::string_view options,
                                    const Graph& graph);

}  // namespace mgc

#endif  // MGC_TESTS_FILETEST_PASS_RUNNER_H_
