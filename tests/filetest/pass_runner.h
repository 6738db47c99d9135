// Passes by name and configurations as words, for test files.

#ifndef MGC_TESTS_FILETEST_PASS_RUNNER_H_
#define MGC_TESTS_FILETEST_PASS_RUNNER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/ir/graph.h"
#include "passes/config/parallel_config.h"
#include "tests/filetest/filetest.h"

namespace mgc {

// Options, separated by blanks: the mesh, `tp=2 dp=2 cp=1 pp=2 vp=2`; `sp`, `zero=1`; `replicated`
// where what is asked for may come to nothing; `selective` or `full` recomputation; `gpipe`, `1f1b`
// or `interleaved` with `micro=4` micro-batches in groups of `group=2`; `bf16`; `samples=3` of a
// micro-batch and data-parallel rank, `seq=16` tokens of a sample: without them those of the graph;
// `cuts=a,b` of a graph that names no layers. InvalidArgument for an unknown option.
absl::StatusOr<ParallelConfig> ParseParallel(absl::string_view options, const Graph& graph);

// Runs passes of the compiler (passes/compile.cc), separated by commas, each checked against its
// output level, with options as above. InvalidArgument for an unknown pass or option.
absl::StatusOr<PassResult> RunPassesByName(absl::string_view passes, absl::string_view options,
                                           const Graph& graph);

}  // namespace mgc

#endif  // MGC_TESTS_FILETEST_PASS_RUNNER_H_
