// Whether two graphs compute the same: for tests of passes that may change how, but not what.

#ifndef MGC_TESTS_FILETEST_EQUIVALENCE_H_
#define MGC_TESTS_FILETEST_EQUIVALENCE_H_

#include "absl/status/status.h"
#include "graph/ir/graph.h"

namespace mgc {

// Evaluates both graphs, of any level each, for a step of one micro-batch: the same random inputs
// by name, accumulators zero. A local graph runs on all ranks of its mesh; a sharded one on one
// device, where its reshards change nothing. Arithmetic is that of
// graph/eval/models/residue_model.h, exact whatever the order of sums. Every output of `before`
// must be one of `after`, equal in every element; InvalidArgument names the first that is not, and
// the seed.
absl::Status CheckEquivalent(const Graph& before, const Graph& after);

}  // namespace mgc

#endif  // MGC_TESTS_FILETEST_EQUIVALENCE_H_
