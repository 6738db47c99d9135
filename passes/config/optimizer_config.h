// Which optimizer trains a model, and which parameters it steps at other rates than the rest.

#ifndef MGC_PASSES_CONFIG_OPTIMIZER_CONFIG_H_
#define MGC_PASSES_CONFIG_OPTIMIZER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// Parameters whose rate and weight decay are multiplied.
struct ParamGroup {
  std::string pattern;  // of names; `*` stands for any run of characters
  double lr = 1;
  double decay = 1;
};

// Reads `layers.*.norm*:lr=0.1,decay=0`: a pattern, and factors for one or both; several with `;`
// between them. InvalidArgument names all that is wrong.
absl::StatusOr<std::vector<ParamGroup>> ParseParamGroups(absl::string_view text);
// What ParseParamGroups reads.
std::string ToString(const std::vector<ParamGroup>& groups);

bool Matches(absl::string_view pattern, absl::string_view name);

struct OptimizerConfig {
  // One of graph/ir/optimizers.h; empty: what the model says of each parameter, or the first.
  std::string name;
  std::vector<ParamGroup> groups;  // factors of several that a parameter is in are multiplied
};

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_OPTIMIZER_CONFIG_H_
