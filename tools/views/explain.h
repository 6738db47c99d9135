// Why values of a plan's model lie where they do, and what is communicated for it: what the pass
// `shard` has written down (passes/graph/shard/decisions.h), in words.

#ifndef MGC_TOOLS_VIEWS_EXPLAIN_H_
#define MGC_TOOLS_VIEWS_EXPLAIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// Values that are alike in all layers that have them.
struct Explanation {
  std::string name;    // a pattern: `%layers.*.mlp.up`
  std::string what;    // `parameter`, `forward matmul(%a, %b)`
  std::string type;    // `f32[embed=64,mlp=256]`
  std::string layout;  // where it is, once made: `@m[-,tp]`
  int64_t count = 0;   // of layers' own values
  // An axis each, with the chain of decisions back to a row, a store or a pin.
  std::vector<std::string> reasons;
  // Changes of layout, the value's own and those for its readers, each with its collectives.
  std::vector<std::string> follows;
};

// Of the values of a training step whose names match (`*` is any text), and of the sums and states
// of parameters that do. NotFound where none does, with the nearest name; errors of ShardAgain.
absl::StatusOr<std::vector<Explanation>> ExplainValues(const Plan& plan, absl::string_view pattern);

// A paragraph each.
std::string ExplainText(const std::vector<Explanation>& explanations);

// {"values": [{"name", "what", "type", "layout", "count", "reasons", "follows"}]}
std::string ExplainJson(const std::vector<Explanation>& explanations);

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_EXPLAIN_H_
